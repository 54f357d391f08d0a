"""``pairun diagnose``: why a job died, from the log of any system."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import time
from typing import IO

from pairun.base.escapes import visible
from pairun.cli.options import add_roots
from pairun.diagnose.brief import in_words
from pairun.diagnose.circumstances import Circumstances
from pairun.diagnose.lines import Log
from pairun.diagnose.weighing import diagnose
from pairun.errors import PairunError, Problem, Problems
from pairun.playbook.content import open_content
from pairun.playbook.rules import read_rules
from pairun.report.problems import print_problems
from pairun.report.tint import Tint

SCHEMA = 1
MAX_BYTES = 64 * 1024 * 1024
"""How much of a log is read, from its end."""

DEADLINE_S = 20.0
"""In CPU time, so that a busy machine does not change the diagnosis."""
_CHUNK = 1 << 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("logs", nargs="+", metavar="LOG",
                        help="what a job printed; - reads standard input")  # fmt: skip
    parser.add_argument("--exit-code", type=_exit_code, metavar="N",
                        help="what it ended with, as a shell counts; -N: signal N ended it")  # fmt: skip
    parser.add_argument("--json", action="store_true",
                        help="a JSON object for each log, each in a line of its own")  # fmt: skip
    add_roots(parser, "a content root whose rules count too")


def _exit_code(text: str) -> int:
    """Read an exit code as a shell reports it; -N, as Python and Slurm write it, means signal N."""
    code = int(text) if re.fullmatch("-?[0-9]{1,9}", text, re.ASCII) else None
    if code is None or not -64 <= code <= 255:
        what = "is no exit code: from 0 to 255, or from -1 to -64 for a signal"
        raise argparse.ArgumentTypeError(f"{visible(text)} {what}")
    return code if code >= 0 else 128 - code


def run(args: argparse.Namespace) -> int:
    """Diagnose each log; returns the exit code."""
    problems = Problems()
    table = read_rules(open_content(args.root, os.environ), problems).table()
    print_problems(problems, args.vault)
    style = Tint(sys.stdout)
    failed: list[Problem] = []
    for n, path in enumerate(args.logs):
        try:
            log = _read(path)
        except OSError as e:
            failed.append(Problem("PR108", f"{path} cannot be read: {e.strerror}"))
            continue
        diagnosis = diagnose(
            [log],
            table,
            Circumstances(exit_code=args.exit_code),
            DEADLINE_S,
            clock=time.process_time,
        )
        if args.json:
            print(
                json.dumps({"schema": SCHEMA, "log": path, **diagnosis.data()}, ensure_ascii=False)
            )
            continue
        if n:
            print()
        head, *rest = in_words(diagnosis)
        print(style(head, "bold"), *rest, sep="\n")
    if failed:
        raise PairunError(*failed)
    return 0


def _read(path: str) -> Log:
    """Read the end of a log, and the number of its first line."""
    if path == "-":
        return _end_of(sys.stdin.buffer, path)
    with open(path, "rb") as f:
        return _end_of(f, path)


def _end_of(stream: IO[bytes], name: str) -> Log:
    parts: list[bytes] = []
    size, skipped = 0, 0
    while chunk := stream.read(_CHUNK):
        parts.append(chunk)
        size += len(chunk)
        while size - len(parts[0]) >= MAX_BYTES:
            gone = parts.pop(0)
            size -= len(gone)
            skipped += gone.count(b"\n")
    return Log(b"".join(parts), name, skipped + 1)
