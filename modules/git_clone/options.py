"""The git clone options that a job may set."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable

ALLOWED: dict[str, tuple[str, bool]] = {
    "--depth": ("--depth", True),
    "--branch": ("--branch", True),
    "-b": ("--branch", True),
    "--jobs": ("--jobs", True),
    "-j": ("--jobs", True),
    "--single-branch": ("--single-branch", False),
    "--no-single-branch": ("--no-single-branch", False),
    "--recursive": ("--recurse-submodules", False),
    "--recurse-submodules": ("--recurse-submodules", False),
    "--shallow-submodules": ("--shallow-submodules", False),
    "--no-tags": ("--no-tags", False),
    "--quiet": ("--quiet", False),
    "-q": ("--quiet", False),
}
"""The spelling of each allowed option, and whether it takes a value.

Any other option could start a program (--upload-pack, --config, --template, …).
"""

_NUMBERS = {"--depth": 1, "--jobs": 0}
"""The smallest value of each number."""

LARGEST = 2**31 - 1
"""git stores numbers in a C int."""


def parse_options(options: Iterable[str]) -> list[tuple[str, str | None]]:
    """The options in a job's texts, each with its value.

    Raises:
        ValueError: an option is not allowed, or lacks its value.
    """
    out: list[tuple[str, str | None]] = []
    words = [word for item in options for word in _split(item)]
    while words:
        word = words.pop(0)
        name, has_value, value = word.partition("=")
        if not word.startswith("--"):
            # -b main and -bmain
            name, value = word[:2], word[2:]
            has_value = value
        if name not in ALLOWED or (has_value and not ALLOWED[name][1]):
            raise ValueError(
                f"the option {word!r} of git clone is not allowed; allowed: {', '.join(ALLOWED)}"
            )
        name, takes_value = ALLOWED[name]
        if takes_value and not has_value:
            value = words.pop(0) if words else ""
        if takes_value and (not value or value.startswith("-")):
            raise ValueError(f"the option {name} of git clone needs a value")
        if name in _NUMBERS and not (
            re.fullmatch("[0-9]{1,10}", value) and _NUMBERS[name] <= int(value) <= LARGEST
        ):
            raise ValueError(
                f"the option {name} of git clone needs a number from {_NUMBERS[name]} to "
                f"{LARGEST}, not {value!r}"
            )
        out.append((name, value if takes_value else None))
    return out


def _split(item: str) -> list[str]:
    try:
        return shlex.split(item)
    except ValueError as e:
        raise ValueError(f"the option {item!r} of git clone cannot be read: {e}") from e


def option_words(options: Iterable[tuple[str, str | None]]) -> list[str]:
    """Options as arguments of git."""
    return [name if value is None else f"{name}={value}" for name, value in options]
