"""``pairun diff``: what other content roots, or another version of pairun, change for a job."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any

from pairun.cli.options import add_roots, print_json, refusal_code
from pairun.errors import PairunError, Problem
from pairun.report.diff_data import comparison_data, refused_data
from pairun.report.diff_text import print_comparison
from pairun.review.diff.jobdiff import compare
from pairun.review.diff.sides import BUILT_IN


class _JobsAlone(argparse.Action):
    """Takes job files, and makes the two roots optional."""

    def __init__(self, *args: Any, paths: Sequence[argparse.Action], **more: Any) -> None:
        super().__init__(*args, **more)
        self._paths = paths

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        for action in self._paths:
            action.required = False
        setattr(namespace, self.dest, values)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    side = f"current content root, or several separated by ':'; {BUILT_IN} means this version's own"
    paths = [
        parser.add_argument("old", metavar="OLD_ROOT", help=f"the {side}"),
        parser.add_argument(
            "new", metavar="NEW_ROOT", help="the changed content root, in the same form"
        ),
        parser.add_argument(
            "jobs", nargs="+", metavar="JOB", help="job files; - for standard input"
        ),
    ]
    parser.add_argument("--against-openpai", action=_JobsAlone, paths=paths, nargs="*", metavar="JOB",
                        help="compare these jobs with what OpenPAI's own runtime does, "
                        "in place of two roots")  # fmt: skip
    add_roots(parser, "with --against-openpai: a further content root; repeat for several")
    parser.add_argument("--role", action="append", default=[], help="this role only")
    parser.add_argument("--user", default="user", help="who submits the job")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--exit-code", action="store_true",
                        help="exit 2 if something differs")  # fmt: skip


def run(args: argparse.Namespace) -> int:
    """Compare; returns 0 when done, 1 after errors, 2 with ``--exit-code`` if jobs differ."""
    if args.against_openpai is not None:
        return _against_openpai(args)
    if args.root:
        hint = "pairun diff OLD_ROOT NEW_ROOT JOB... names the roots itself"
        raise PairunError(Problem("PR801", "--root needs --against-openpai", hint=hint))
    try:
        comparison = compare(args.old, args.new, args.jobs, args.user, args.role, args.vault)
    except PairunError as e:
        if not args.json:
            raise
        print_json(refused_data(e.problems, args.vault))
        return refusal_code(e)
    if args.json:
        print_json(comparison_data(comparison))
    else:
        print_comparison(comparison, sys.stdout)
    if comparison.fails:
        return 1
    return 2 if args.exit_code and comparison.any else 0


def _against_openpai(args: argparse.Namespace) -> int:
    # Only this comparison plans with the command line's own roots.
    from pairun.playbook.content import open_content
    from pairun.playbook.effective import Layers
    from pairun.report.openpai_text import against_data, print_against
    from pairun.report.problems import print_problems
    from pairun.review.diff.againstopenpai import against_openpai

    # With options between the jobs, argparse assigns some jobs to the two roots.
    jobs = [*args.against_openpai, *filter(None, (args.old, args.new)), *(args.jobs or ())]
    if not jobs:
        hint = "pairun diff --against-openpai JOB..."
        raise PairunError(Problem("PR801", "--against-openpai needs a job file", hint=hint))
    layers = Layers(open_content(args.root, os.environ))
    compared = [against_openpai(path, layers, args.user, args.role, args.vault) for path in jobs]
    if args.json:
        print_json(against_data(compared))
    for each in compared:
        if not args.json:
            print_against(each, sys.stdout)
            sys.stdout.flush()
            print_problems(each.problems, vault=each.vault)
    if any(each.problems.errors for each in compared):
        return 1
    return 2 if args.exit_code and any(r.cases for c in compared for r in c.roles) else 0
