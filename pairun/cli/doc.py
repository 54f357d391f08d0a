"""``pairun doc``: documentation of a module, plugin, keyword, error or class of failure."""

from __future__ import annotations

import argparse
import os
import pathlib
import shlex
import sys
from collections.abc import Iterable
from typing import Any

from pairun.cli.options import add_roots, print_json, refusal_code
from pairun.errors import PairunError, Problem
from pairun.playbook.content import open_content
from pairun.report.listing import document, document_data
from pairun.report.problems import problem_data
from pairun.report.tint import Tint
from pairun.secrets.vault import Vault

SCHEMA = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("name", nargs="*", help="a module, plugin, keyword, error id or class of failure; or one "
                        "of modules, plugins, keywords, errors, failures; `plugin git` is the plugin of that "
                        "name only")  # fmt: skip
    add_roots(parser, "a content root with further modules and plugins")
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--json", action="store_true", help="print JSON")
    output.add_argument("--site", type=pathlib.Path, metavar="DIR",
                        help="write the whole documentation to DIR, as a web site with search")  # fmt: skip


def run(args: argparse.Namespace) -> int:
    """Print documentation."""
    from pairun.cli.main import COMMANDS

    if args.site:
        return _write_site(args)
    try:
        content = open_content(args.root, os.environ)
        if args.json:
            _print_json(document_data(args.name, content, COMMANDS), (), args.vault)
            return 0
        style = Tint(sys.stdout)
        for line in document(args.name, content, COMMANDS):
            shown = line.replace("``", "`")
            # A line without indentation is a heading.
            print(style(shown, "bold") if shown and not shown.startswith(" ") else shown)
    except PairunError as e:
        if not args.json:
            raise
        _print_json({}, e.problems, args.vault)
        return refusal_code(e)
    return 0


def _write_site(args: argparse.Namespace) -> int:
    """Write the documentation site; it is always complete, so the user may name no page."""
    if args.name:
        raise PairunError(Problem("PR801", "--site writes every page; omit the names"))
    # MkDocs is slow to import and rarely installed.
    from pairun.report.site import build_site

    print(f"wrote {build_site(args.site)}")
    print(
        f"to search in it, serve it: python3 -m http.server --directory {shlex.quote(str(args.site))}"
    )
    return 0


def _print_json(data: dict[str, Any], problems: Iterable[Problem], vault: Vault) -> None:
    whole = {"schema": SCHEMA, **data, "problems": [problem_data(p, vault) for p in problems]}
    print_json(whole)
