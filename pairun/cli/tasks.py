"""``pairun tasks``: run the tasks or the exit handlers of a runtime plan, for PID 1."""

from __future__ import annotations

import argparse

from pairun.tasks.process import run_part


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("pai_dir", metavar="DIR", help="the shared volume")
    parser.add_argument("--part", choices=("tasks", "handlers"), required=True)
    parser.add_argument("--state-in", type=int, metavar="FD")
    parser.add_argument("--state-out", type=int, metavar="FD", required=True)


def run(args: argparse.Namespace) -> int:
    """Run one part of the runtime phase; writes its result to ``--state-out``."""
    run_part(args.pai_dir, args.part, args.state_in, args.state_out, args.vault)
    return 0
