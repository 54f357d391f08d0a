"""``pairun schema``: the JSON Schemas that editors and validators use."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import Any

from pairun.cli.options import add_roots, print_json
from pairun.contract.arguments import arguments_schema
from pairun.job.protocol import editor_schema
from pairun.playbook.content import open_content
from pairun.playbook.effective import layer_schema
from pairun.playbook.keywords import playbook_schema
from pairun.playbook.policy import published_schema
from pairun.playbook.specs import spec_schema

_FORMATS = ("playbook", "plugin-spec", "policy", "job", "extras")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("format", nargs="?", choices=_FORMATS, default="playbook")
    add_roots(parser, "a content root whose modules are known too")


def run(args: argparse.Namespace) -> int:
    """Print a schema."""
    print_json(schema(args.format, args.root))
    return 0


def schema(name: str, roots: list[str]) -> dict[str, Any]:
    """The JSON Schema of a format, including the arguments of every known module.

    Args:
        name: one of `_FORMATS`.
        roots: further content roots.
    """
    if name == "policy":
        return published_schema()
    content = open_content(roots, os.environ)
    modules = {n: arguments_schema(content.module(n)) for n in sorted(content.modules)}
    makers: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
        "playbook": playbook_schema,
        "plugin-spec": spec_schema,
        "extras": layer_schema,
        "job": lambda known: editor_schema(layer_schema(known)),
    }
    return makers[name](modules)
