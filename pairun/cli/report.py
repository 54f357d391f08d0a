"""``pairun report``: what happened in a run, read from its journals."""

from __future__ import annotations

import argparse
import io
import json
import sys
from collections.abc import Sequence

from pairun.errors import PairunError, Problem
from pairun.report.journal.blame_text import print_blame
from pairun.report.journal.data import report_data
from pairun.report.journal.finding import Found, find
from pairun.report.journal.history import phases_of
from pairun.report.journal.pastinstances import InstancePast
from pairun.report.journal.reading import describe, notes, read_entries
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
    instances: list[InstancePast] = []
    problems: list[Problem] = []
    try:
        found = find(args.path)
    except PairunError as e:
        found = []
        problems += e.problems
    for each in found:
        try:
            instances.append(_read(each))
        except PairunError as e:
            problems += e.problems
    if args.json:
        shown = [{"id": p.id, "message": p.message, "hint": p.hint} for p in problems]
        data = report_data(instances, problems=shown, with_blame=args.blame)
        # ASCII alone: nothing in it is obeyed by a terminal, or refused by one
        print(json.dumps(data, indent=2))
    else:
        _print(instances, blame=args.blame)
        print_problems(problems)
    return 1 if problems else 0


def _read(found: Found) -> InstancePast:
    """What a journal tells.

    Raises:
        PairunError: it cannot be read.
    """
    if found.journal is None:
        return InstancePast(label=found.label, journal=None, logs=found.logs)
    try:
        if found.journal == "-":
            reading = read_entries(sys.stdin.buffer, "standard input")
        else:
            with open(found.journal, "rb") as f:
                reading = read_entries(f, describe(found.journal))
    except OSError as e:
        message = f"{describe(found.journal)}: {e.strerror or e}"
        raise PairunError(Problem("PR810", message)) from e
    if found.journal == "-" and not reading.lines:
        raise PairunError(Problem("PR810", "standard input: there is nothing in it"))
    return InstancePast(
        label=found.label,
        journal=found.journal,
        logs=found.logs,
        phases=phases_of(reading.entries),
        notes=notes(reading),
        ignored=reading.ignored,
    )


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
