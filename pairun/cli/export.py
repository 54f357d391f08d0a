"""``pairun export``: the table of exit codes in the formats of platforms that retry jobs."""

from __future__ import annotations

import argparse
import os

from pairun.cli.options import add_roots
from pairun.errors import Problems
from pairun.playbook.content import open_content
from pairun.playbook.readyrules import made_rules
from pairun.playbook.rules import read_rules
from pairun.report.exitcodes import POLICY_NOTE, WRITERS
from pairun.report.problems import print_problems

RULES = "rules"
"""The only format that is not a table of exit codes."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("format", choices=(*WRITERS, RULES),
                        help=f"{RULES}: the rules in the form that PID 1 reads, for building an image")  # fmt: skip
    parser.add_argument("--container", metavar="NAME", default="app",
                        help="the container whose exit codes a policy reads (default: app, as in "
                        "`pairun manifest`)")  # fmt: skip
    add_roots(parser, "a content root with further rules and exit codes")


def run(args: argparse.Namespace) -> int:
    """Print the table as YAML, or the rules as JSON."""
    import yaml

    problems = Problems()
    content = open_content(args.root, os.environ)
    if args.format == RULES:
        compiled = made_rules(content, problems)
        print_problems(problems, args.vault)
        print(compiled.decode())
        return 0
    rules = read_rules(content, problems)
    print_problems(problems, args.vault)
    table = WRITERS[args.format](rules, args.container)
    if "podFailurePolicy" in table:
        print(POLICY_NOTE, end="")
    print(yaml.safe_dump(table, sort_keys=False, allow_unicode=True, width=1000), end="")
    return 0
