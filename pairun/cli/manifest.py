"""``pairun manifest JOB``: print a job's objects in a cluster, as YAML for kubectl."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

import pairun
from pairun.cli.objectoptions import add_object_arguments, make_objects_of
from pairun.engines.manifest.versions import lowest
from pairun.errors import PairunError, Problem, Problems
from pairun.job.writing import as_yaml
from pairun.kube.owners import Object
from pairun.report.problems import print_problems


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("job", metavar="JOB", nargs="?", help="the job file; - for standard input")
    parser.add_argument("--retry-rules", metavar="CONTAINER", nargs="?", const="app",
                        help="instead of a job's objects print which exit codes of a container "
                        "(default: app) the engine retries, for your own objects")  # fmt: skip
    add_object_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Print the objects, or the rules; returns 0 if pairun could make all of them, else 1."""
    if (args.job is None) == (args.retry_rules is None):
        raise PairunError(Problem("PR801", "give either a JOB or --retry-rules"))
    if args.retry_rules is not None:
        return _print_retry_rules(args)
    _, objects, problems = make_objects_of(args)
    print_problems(problems, args.vault)
    if problems.errors:
        return 1
    text = "---\n".join(as_yaml(each) for each in objects)
    sys.stdout.write("".join(f"# {line}\n" for line in _comments(args.job, objects)) + text)
    return 0


def _comments(path: str, objects: Sequence[Object]) -> list[str]:
    feature = lowest(objects)
    source = "standard input" if path == "-" else path
    lines = [
        f"Needs Kubernetes {feature}, for {feature.name}.",
        f"Made by pairun {pairun.__version__} of {source}: kubectl apply -f FILE",
        "Holds secrets and a new random key: apply one file once.",
    ]
    return [" ".join(line.split()) for line in lines]


def _print_retry_rules(args: argparse.Namespace) -> int:
    import yaml

    from pairun.engines.manifest.retries import POLICY_NOTE, WRITERS
    from pairun.playbook.content import open_content
    from pairun.playbook.rules import read_rules

    if args.engine not in WRITERS:
        raise PairunError(Problem("PR801", f"nothing retries with the engine {args.engine}"))
    problems = Problems()
    rules = read_rules(open_content(args.root, os.environ), problems)
    print_problems(problems, args.vault)
    table = WRITERS[args.engine](rules, args.retry_rules)
    if "podFailurePolicy" in table:
        print(POLICY_NOTE, end="")
    print(yaml.safe_dump(table, sort_keys=False, allow_unicode=True, width=1000), end="")
    return 0
