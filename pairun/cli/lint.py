"""``pairun lint``: all problems of job files, playbooks, policies, plugin specs and modules."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable

from pairun.cli.options import add_roots, print_json
from pairun.errors import Problem
from pairun.report.problems import print_problems, problem_data
from pairun.review.lint import SKIPPED, lint

SCHEMA = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("files", nargs="+", metavar="FILE",
                        help="a file, or a folder with all its files; - is standard input")  # fmt: skip
    add_roots(parser, "a content root that the files are checked against")
    parser.add_argument("--json", action="store_true", help="JSON on standard output")


def run(args: argparse.Namespace) -> int:
    """Check the files; 0 when there is no error, else 1."""
    problems, files = lint(args.files, args.root, args.vault)
    linted = [kind for kind in files.values() if kind != SKIPPED]
    if args.json:
        listed = [problem_data(p, args.vault) for p in problems]
        kinds = [{"file": file, "kind": kind} for file, kind in files.items()]
        print_json({"schema": SCHEMA, "files": kinds, "problems": listed})
        return _exit_code(problems)
    if any(map(os.path.isdir, args.files)):
        for file, kind in files.items():
            print(f"{file}: {kind}")
    if problems:
        sys.stdout.flush()
        print_problems(problems, args.vault)
    else:
        print(f"{len(linted)} file{'s' * (len(linted) != 1)}: no problems")
    return _exit_code(problems)


def _exit_code(problems: Iterable[Problem]) -> int:
    return 1 if any(p.severity == "error" for p in problems) else 0
