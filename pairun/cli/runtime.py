"""``pairun runtime``: the entry point of the user's container."""

from __future__ import annotations

import argparse

from pairun.base.paths import pai_dir
from pairun.runtime.main import main
from pairun.secrets.vault import Vault


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments; everything else is on the shared volume."""
    parser.add_argument("command", nargs="*", metavar="-- COMMAND",
                        help="the user's command, instead of the plan's")  # fmt: skip
    parser.add_argument("--dry-run", action="store_true",
                        help="probe in this container without changing anything")  # fmt: skip


def run(args: argparse.Namespace) -> int:
    """Run the runtime phase and return the container's exit code."""
    if args.dry_run:
        return _review(pai_dir(), args.vault)
    return main(pai_dir(), args.vault, args.command)


def _review(root: str, vault: Vault) -> int:
    import os
    import sys

    from pairun.report.review_text import print_phase
    from pairun.review.taskreview import probe_plan
    from pairun.volume.planfile import read_plan

    plan = read_plan(root, vault)
    print_phase("runtime", probe_plan(plan, dict(os.environ), root, vault), vault, sys.stdout)
    return 0
