"""``pairun doc``: documentation of a module, plugin, keyword, error or class of failure."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from pairun.cli.options import add_roots, print_json, refuse
from pairun.errors import PairunError, Problem
from pairun.playbook.content import open_content
from pairun.report.pages import document, document_data
from pairun.report.problems import problem_data
from pairun.report.tint import Tint
from pairun.secrets.vault import Vault

_SCHEMA = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("name", nargs="*", help="a module, plugin, keyword, error id or class of failure; or one "
                        "of modules, plugins, keywords, errors, failures; `plugin git` is the plugin of that "
                        "name only")  # fmt: skip
    add_roots(parser, "a content root with further modules and plugins")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Print documentation."""
    from pairun.cli.main import COMMANDS

    try:
        content = open_content(args.root, os.environ)
        if args.json:
            print_json(_data((), args.vault, document_data(args.name, content, COMMANDS)))
            return 0
        style = Tint(sys.stdout)
        for line in document(args.name, content, COMMANDS):
            shown = line.replace("``", "`")
            # A line without indentation is a heading.
            print(style(shown, "bold") if shown and not shown.startswith(" ") else shown)
    except PairunError as e:
        return refuse(e, args, _data)
    return 0


def _data(
    problems: Iterable[Problem], vault: Vault, document: Mapping[str, Any] = {}
) -> dict[str, Any]:
    return {"schema": _SCHEMA, **document, "problems": [problem_data(p, vault) for p in problems]}
