"""``pairun progress``: the user's code reports its progress, which decides on retries."""

from __future__ import annotations

import argparse
import os

from pairun.base.paths import log_dir, pai_dir
from pairun.errors import PairunError, Problem
from pairun.volume.door import Door
from pairun.volume.progressfile import NotedProgress, read_progress, write_progress


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "--step",
        type=_count,
        metavar="N",
        help="the last completed step (default: from the previous call)",
    )
    parser.add_argument(
        "--epoch", type=_count, metavar="N", help="the last completed epoch (default: likewise)"
    )
    parser.add_argument("--checkpoint", default="", metavar="PATH",
                        help="path of the last checkpoint (default: likewise)")  # fmt: skip


def run(args: argparse.Namespace) -> int:
    """Write the file; values that are not given keep their last value. Returns 0.

    Raises:
        PairunError: no progress is given (PR801), or the file cannot be written (PR814).
    """
    if args.step is None and args.epoch is None and not args.checkpoint:
        raise PairunError(
            Problem("PR801", "no progress given", hint="as in pairun progress --step 100")
        )
    root = pai_dir()
    folder = log_dir(root, os.environ)
    noted = NotedProgress(args.step, args.epoch, args.vault.text(args.checkpoint))
    try:
        door = Door(root)
        write_progress(door, folder, noted.over(read_progress(door, folder)))
    except OSError as e:
        message = f"progress cannot be written to {folder}: {e.strerror or e}"
        raise PairunError(
            Problem("PR814", message, hint="use it in a command that pairun runs")
        ) from e
    return 0


def _count(text: str) -> int:
    """Read a count."""
    if not text.isascii() or not text.isdecimal() or len(text) > 15:
        raise argparse.ArgumentTypeError("must be a number, 0 or more")
    return int(text)
