"""``pairun diagnose``: why a job died, from the logs of any system."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence

from pairun.base.escapes import visible
from pairun.cli.options import add_roots, print_json
from pairun.diagnose.circumstances import Circumstances
from pairun.diagnose.gathering import answer
from pairun.diagnose.history import RetryAdvice
from pairun.diagnose.incident import Incident, incident_data, incident_lines, is_alone
from pairun.diagnose.logfiles import LogFile, files_in, without_logs
from pairun.diagnose.table import Table
from pairun.errors import PairunError, Problem, Problems
from pairun.playbook.content import open_content
from pairun.playbook.rules import read_rules
from pairun.report.problems import print_problems
from pairun.report.tint import Tint

_SCHEMA = 1
_DEADLINE_S = 20.0
"""The time limit for reading and judging, in seconds; the answer names what was not read."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("logs", nargs="*", metavar="LOG|DIR",
                        help="the logs of one job's ranks: files (plain or compressed) or a folder of "
                        "them; - reads standard input")  # fmt: skip
    parser.add_argument("--each", action="store_true",
                        help="diagnose each log alone; the logs are of different jobs")  # fmt: skip
    parser.add_argument("--exit-code", type=_exit_code, metavar="N",
                        help="the job's exit code as a shell shows it; -N for a job killed by signal N")  # fmt: skip
    parser.add_argument("--json", action="store_true",
                        help="print a JSON object; with --each one line per log")  # fmt: skip
    add_roots(parser, "a content root with further rules")


def _exit_code(text: str) -> int:
    """Read an exit code in a shell's form; -N means signal N, as in Python and Slurm."""
    code = int(text) if re.fullmatch("-?[0-9]{1,9}", text, re.ASCII) else None
    if code is None or not -64 <= code <= 255:
        what = "is not an exit code: from 0 to 255, or from -1 to -64 for a signal"
        raise argparse.ArgumentTypeError(f"{visible(text)} {what}")
    return code if code >= 0 else 128 - code


def run(args: argparse.Namespace) -> int:
    """Diagnose a job's logs; returns the exit code."""
    if not args.logs:
        raise PairunError(Problem("PR801", "no log given"))
    problems = Problems()
    table = Table(read_rules(open_content(args.root, os.environ), problems).data())
    print_problems(problems, args.vault)
    facts = Circumstances(exit_code=args.exit_code)
    files = files_in(args.logs)
    groups = [[file] for file in files] if args.each else [files]
    failed: list[Problem] = []
    shown = 0
    for group in groups:
        result = answer(group, table, _DEADLINE_S, facts)
        failed += [Problem("PR108", f"{name} cannot be read: {why}") for name, why in result.failed]
        if result.incident is not None:
            _show(args, result.incident, result.advice, _named(args.logs, group), blank=shown > 0)
            shown += 1
    if not files:
        failed += [Problem("PR108", without_logs(folder)) for folder in args.logs]
    if failed:
        raise PairunError(*failed)
    return 0


def _show(
    args: argparse.Namespace,
    incident: Incident,
    advice: RetryAdvice | None,
    name: str,
    *,
    blank: bool,
) -> None:
    """Print an answer; a single rank's log is shown like any log."""
    if args.json:
        data = {"schema": _SCHEMA, "log": name, **incident.diagnosis.data()}
        data["incident"] = None if is_alone(incident) else incident_data(incident)
        data["history"] = None if advice is None else advice._asdict()
        print_json(data, indent=None)
        return
    if blank:
        print()
    head, *rest = incident_lines(incident)
    if args.each:
        head = f"{visible(name)}: {head}"
    if advice is not None and advice.words:
        rest.append(f"  attempts: {visible(advice.words)}")
    print(Tint(sys.stdout)(head, "bold"), *rest, sep="\n")


def _named(paths: Sequence[str], group: Sequence[LogFile]) -> str:
    """A name for what an answer is about, from the person's own paths."""
    return group[0].name if len(group) == 1 else " ".join(paths)
