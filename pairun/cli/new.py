"""``pairun new``: write a commented, valid example of a job, plugin, module or content root."""

from __future__ import annotations

import argparse
import os

from pairun.playbook.content import open_content
from pairun.scaffold.starting import KINDS, write_start


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("kind", choices=tuple(KINDS), metavar="|".join(KINDS),
                        help="what to create")  # fmt: skip
    defaults = ", ".join(f"{kind.name} for a {name}" for name, kind in KINDS.items())
    parser.add_argument("name", nargs="?", metavar="NAME",
                        help=f"its name; for a root, its folder (default: {defaults})")  # fmt: skip
    parser.add_argument("--root", metavar="DIR", default="",
                        help="where to write the files; for a plugin or module, its content "
                        "root (default: the current folder)")  # fmt: skip


def run(args: argparse.Namespace) -> int:
    """Write the files; print their names and the next commands."""
    written = write_start(args.kind, args.name, args.root, open_content([], os.environ))
    for file in written.files:
        print(f"wrote {file}")
    for step in written.next_steps:
        print(f"next: {step}")
    return 0
