"""``pairun diff``: what other content roots, or another version of pairun, change for a job."""

from __future__ import annotations

import argparse
import sys

from pairun.cli.options import print_json, refuse
from pairun.errors import PairunError
from pairun.report.comparison import comparison_data, print_comparison, refused_data
from pairun.review.comparison import BUILT_IN, compare


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    side = f"current content root, or several separated by ':'; {BUILT_IN} means this version's own"
    parser.add_argument("old", metavar="OLD_ROOT", help=f"the {side}")
    parser.add_argument(
        "new", metavar="NEW_ROOT", help="the changed content root, in the same form"
    )
    parser.add_argument("jobs", nargs="+", metavar="JOB", help="job files; - for standard input")
    parser.add_argument("--role", action="append", default=[], help="this role only")
    parser.add_argument("--user", default="user", help="who submits the job")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--exit-code", action="store_true",
                        help="exit 2 if something differs")  # fmt: skip


def run(args: argparse.Namespace) -> int:
    """Compare; returns 0 when done, 1 after errors, 2 with ``--exit-code`` if jobs differ."""
    try:
        comparison = compare(args.old, args.new, args.jobs, args.user, args.role, args.vault)
    except PairunError as e:
        return refuse(e, args, refused_data)
    if args.json:
        print_json(comparison_data(comparison))
    else:
        print_comparison(comparison, sys.stdout)
    if any(job.fails for job in comparison.jobs):
        return 1
    return 2 if args.exit_code and comparison.any else 0
