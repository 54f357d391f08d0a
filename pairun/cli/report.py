"""``pairun report``: what happened in a run, read from its journals."""

from __future__ import annotations

import argparse
import io
import json
import sys
from collections.abc import Sequence

from pairun.report.journal.blame_text import print_blame
from pairun.report.journal.data import report_data
from pairun.report.journal.instances import read_instances
from pairun.report.journal.pastinstances import InstancePast
from pairun.report.journal.text import JournalText
from pairun.report.problems import print_problems


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("path", nargs="?", metavar="PATH",
                        help="a journal.jsonl, a Pod's log directory, logs/ of a shared volume, or "
                        "the folder of a run on this machine; - for standard input (default: the "
                        "last run in pairun-run/)")  # fmt: skip
    parser.add_argument("--blame", action="store_true",
                        help="where the time went, the dearest first")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="JSON on standard output")


def run(args: argparse.Namespace) -> int:
    """Print the report; 0 when everything could be read, else 1, whatever the report says."""
    instances, problems = read_instances(args.path)
    if args.json:
        shown = [{"id": p.id, "message": p.message, "hint": p.hint} for p in problems]
        data = report_data(instances, problems=shown, with_blame=args.blame)
        # ASCII alone: nothing in it is obeyed by a terminal, or refused by one
        print(json.dumps(data, indent=2))
    else:
        _print(instances, blame=args.blame)
        print_problems(problems, args.vault)
    return 1 if problems else 0


def _print(instances: Sequence[InstancePast], *, blame: bool) -> None:
    if not instances:
        return
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    text = JournalText(sys.stdout)
    if blame:
        print_blame(text, instances)
    else:
        text.run(instances)
