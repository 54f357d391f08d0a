"""``pairun report``: what happened in a run, from its journals."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence

from pairun.base.runfolders import RUNS
from pairun.cli.options import add_access, cluster_of, print_json
from pairun.engines.kubernetes.cluster import Cluster
from pairun.errors import PairunError, Problem
from pairun.kube.labels import OBJECT_NAME
from pairun.report.journal.data import report_data
from pairun.report.journal.finding import read_all, read_instance
from pairun.report.journal.history import InstancePast
from pairun.report.journal.text import JournalText, print_blame
from pairun.report.problems import print_problems
from pairun.volume.logjournal import LOG_JOURNAL_VARIABLE


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("path", nargs="?", metavar="PATH|NAME",
                        help="a journal.jsonl, a Pod's log directory, logs/ of a shared volume, or "
                        "the folder of a run on this machine; - for standard input (default: the "
                        "last run in pairun-run/); or a job's name in the cluster")  # fmt: skip
    add_access(parser)
    parser.add_argument("--blame", action="store_true",
                        help="show where the time went, longest first")  # fmt: skip
    parser.add_argument("--html", metavar="FILE",
                        help="write the report to FILE as one HTML page with a timeline; - for standard "
                        "output")  # fmt: skip
    parser.add_argument("--metrics", action="store_true",
                        help="print sums of all journals as OpenMetrics text, for a scrape")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Print the report; returns 0 if everything could be read, even for a failed run; else 1."""
    cluster = _cluster(args)
    if args.metrics:
        text, problems = _metrics(args.path, cluster)
        sys.stdout.write(text)
        print_problems(problems, args.vault)
        return 1 if problems else 0
    instances, problems = _read(args.path, cluster)
    if args.html and instances:
        _write_page(args.html, instances, args.path, problems)
        print_problems(problems, args.vault)
    elif args.json:
        shown = [{"id": p.id, "message": p.message, "hint": p.hint} for p in problems]
        print_json(report_data(instances, problems=shown, with_blame=args.blame))
    else:
        _print(instances, blame=args.blame)
        print_problems(problems, args.vault)
    return 1 if problems else 0


def _metrics(path: str | None, cluster: Cluster | None) -> tuple[str, list[Problem]]:
    if path is None or cluster is None:
        from pairun.report.journal.metrics import read_metrics

        return read_metrics(path)
    from pairun.engines.kubernetes.clusterjournals import read_cluster_metrics

    text, problems = read_cluster_metrics(cluster, path)
    return text, problems if text or problems else [_without_journals(path)]


def _read(path: str | None, cluster: Cluster | None) -> tuple[list[InstancePast], list[Problem]]:
    """Read the instances of a local run or of a job in a cluster."""
    if path is None or cluster is None:
        return read_all(path, read_instance)
    # imported here, because most reports read files
    from pairun.engines.kubernetes.clusterjournals import read_cluster_instances

    instances = read_cluster_instances(cluster, path)
    has_journal = any(i.journal is not None for i in instances)
    return instances, [] if has_journal else [_without_journals(path)]


def _cluster(args: argparse.Namespace) -> Cluster | None:
    """The cluster of a job, if an option selects one or no file has this name; else None.

    Raises:
        PairunError: the selected cluster cannot be used.
    """
    is_selected = any((args.kubeconfig, args.context, args.namespace))
    if is_selected and args.path is None:
        raise PairunError(Problem("PR801", "name the job in the cluster"))
    if args.path is None:
        return None
    may_be_job = re.fullmatch(OBJECT_NAME, args.path) and not os.path.lexists(args.path)
    if not (is_selected or may_be_job):
        return None
    try:
        return cluster_of(args)
    except PairunError:
        if is_selected:
            raise
        return None


def _without_journals(name: str) -> Problem:
    message = f"no log of job '{name}' contains a journal"
    hint = f"it does with {LOG_JOURNAL_VARIABLE}=true in both containers, as `pairun submit` makes them"
    return Problem("PR810", message, hint=hint)


def _print(instances: Sequence[InstancePast], *, blame: bool) -> None:
    if not instances:
        return
    text = JournalText(sys.stdout)
    if blame:
        print_blame(text, instances)
    else:
        text.run(instances)


def _write_page(
    file: str, instances: Sequence[InstancePast], path: str | None, problems: Sequence[Problem]
) -> None:
    from pairun.report.page.document import write_page
    from pairun.report.page.runpage import run_page

    page = run_page(instances, _title(instances, path), [p.message for p in problems])
    write_page(file, page)


def _title(instances: Sequence[InstancePast], path: str | None) -> str:
    """The run's name for people: the name of its folder."""
    if path == "-":
        return "a journal"
    if path is None:
        # The last run on this machine: RUNS/JOB/INSTANCE/….
        within = instances[0].journal or next(iter(instances[0].logs), "run")
        path = os.path.relpath(within, RUNS).split(os.sep)[0]
    return os.path.basename(os.path.abspath(path))
