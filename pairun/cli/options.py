"""Shared by commands: options, JSON output, the exit code of a refusal."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from typing import Any

from pairun.base.durations import parse_duration
from pairun.errors import PairunError, Problem


def duration_s(option: str, text: str) -> float:
    """The value of an option that is a duration, in seconds.

    Args:
        option: the option with its dashes.
        text: its value.

    Raises:
        PairunError: the value is not a duration (PR801).
    """
    seconds = parse_duration(text)
    if seconds is None:
        hint = f"did you mean '{text}s'?" if text.isdigit() else "as in 500ms, 30s, 1h30m"
        raise PairunError(Problem("PR801", f"{option} {text} is not a duration", hint=hint))
    return seconds


def add_roots(parser: argparse.ArgumentParser, meaning: str) -> None:
    """Declare ``--root DIR``, which may be repeated.

    Args:
        parser: of the command.
        meaning: what the command does with a content root, for the help.
    """
    parser.add_argument("--root", action="append", default=[], metavar="DIR", help=meaning)


def add_color(parser: argparse.ArgumentParser) -> None:
    """Declare ``--color WHEN``."""
    parser.add_argument("--color", choices=("auto", "always", "never"), default="auto",
                        help="when to use colours; auto: on a terminal, unless NO_COLOR is set")  # fmt: skip


def print_json(document: Mapping[str, Any]) -> None:
    """Print a document on standard output."""
    print(json.dumps(document, indent=2, ensure_ascii=False))


def refusal_code(refusal: PairunError) -> int:
    """The exit code of a command that could not start: 2 for wrong usage, else 1."""
    return 2 if all(p.id == "PR801" for p in refusal.problems) else 1
