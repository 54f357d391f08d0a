"""``pairun runtime``: the entry point of the user's container."""

from __future__ import annotations

import argparse

from pairun.runtime.main import main
from pairun.runtime.paths import pai_dir


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments: none, the shared volume says everything."""


def run(args: argparse.Namespace) -> int:
    """Run the runtime phase and return the container's exit code."""
    return main(pai_dir())
