"""``pairun status``: the state of a job in a cluster, once or until it has ended."""

from __future__ import annotations

import argparse
import sys

import attrs

from pairun.cli.following import add_follow_arguments, follow_job, follow_limits
from pairun.cli.options import add_access, add_color, cluster_of, print_json
from pairun.engines.kubernetes.jobstate import JobState
from pairun.engines.kubernetes.watching import read_job
from pairun.errors import PairunError, Problem

_SCHEMA = 1
COLUMNS = ("INSTANCE", "POD", "NODE", "PHASE", "RESTARTS", "REASON")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("name", metavar="NAME", help="the job's name in the cluster")
    add_access(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--watch", action="store_true",
                        help="follow the job until it has ended, and exit with its exit code")  # fmt: skip
    add_follow_arguments(parser)
    add_color(parser)


def run(args: argparse.Namespace) -> int:
    """Print the job's state; returns 0 if known, else 1; with ``--watch`` the job's exit code."""
    limits = follow_limits(args, "--watch", given=args.watch)
    if args.watch and args.json:
        raise PairunError(Problem("PR801", "--json and --watch exclude each other"))
    cluster = cluster_of(args)
    if args.watch:
        return follow_job(cluster, args, args.name, limits)
    state = read_job(cluster, args.name)
    if args.json:
        print_json(_data(state))
    else:
        _print(state, args)
    return 0


def _data(state: JobState) -> dict[str, object]:
    instances = []
    for each in state.instances:
        data = attrs.asdict(each)
        del data["grace_s"]
        data["diagnosis"] = each.diagnosis or None
        instances.append({**data, "exit_code": each.exit_code})
    return {"schema": _SCHEMA, **attrs.asdict(state), "instances": instances}


def _print(state: JobState, args: argparse.Namespace) -> None:
    # imported here, because the terminal library takes 0.1 s
    from pairun.report.paper import paper, print_table

    reasons = "; ".join(filter(None, (state.because, _held_up(state))))
    because = f": {reasons}" if reasons else ""
    console = paper(sys.stdout, args.color)
    lines = [
        f"{state.name} in {state.namespace} ({state.engine}) is {state.state}{because}",
        _pods(state),
    ]
    for line in lines:
        console.print(args.vault.text(line), soft_wrap=not console.is_terminal)
    if state.instances:
        rows = (
            (i.label, i.pod, i.node or "-", i.phase, str(i.restarts), i.reason)
            for i in state.instances
        )
        print_table(console, COLUMNS, rows)


def _pods(state: JobState) -> str:
    """How many instances have a Pod, and what happened to the Pods of the others."""
    gone = sum(1 for i in state.instances if i.gone)
    line = f"{len(state.instances) - gone} of {state.total} instances have a Pod"
    return f"{line}; {gone} ended and their Pods are deleted" if gone else line


def _held_up(state: JobState) -> str:
    """Why a job waits: the reason of the first instance that has one, such as a missing image."""
    if state.state != "waiting":
        return ""
    held = (f"{i.label} is {i.phase}: {i.reason}" for i in state.instances if i.reason)
    return next(held, "")
