"""``pairun lint``: all problems of job files, playbooks, policies, plugin specs and modules."""

from __future__ import annotations

import argparse

from pairun.cli.options import add_roots, print_json
from pairun.report.problems import print_problems, problem_data
from pairun.review.lint import lint

SCHEMA = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="- is standard input")
    add_roots(parser, "a content root that the files are checked against")
    parser.add_argument("--json", action="store_true", help="JSON on standard output")


def run(args: argparse.Namespace) -> int:
    """Check the files; 0 when there is no error, else 1."""
    problems = lint(args.files, args.root, args.vault)
    if args.json:
        listed = [problem_data(p, args.vault) for p in problems]
        print_json({"schema": SCHEMA, "problems": listed})
    elif problems:
        print_problems(problems, args.vault)
    else:
        print(f"{len(args.files)} file{'s' * (len(args.files) > 1)}: no problems")
    return 1 if any(p.severity == "error" for p in problems) else 0
