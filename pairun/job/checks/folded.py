"""Finds commands that YAML joins into one, because the second is indented deeper than the first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pairun.errors import Place, Problem
from pairun.playbook.document.reading import Node


def folded_warnings(commands: Iterable[Node]) -> Iterator[Problem]:
    """A warning for each line that looks like a command but continues the one above.

    Args:
        commands: the role's commands.
    """
    for command in commands:
        for place in _items(command):
            yield Problem(
                "PR932",
                "this line continues the command above it, and is not a separate command",
                place,
                "indent its '-' as that of the command above",
                "warning",
            )


def _items(command: Node) -> Iterator[Place]:
    """The lines of a plain text, except the first, that look like an item of a list."""
    place, text = command.place, command.value
    if not isinstance(text, str):
        return
    lines = place.source.lines
    first = lines[place.line - 1][place.column - 1 :].strip() if place.line <= len(lines) else ""
    end = len(first) if text.startswith(first) else len(text)
    for number in range(place.line, len(lines)):
        line = lines[number].strip()
        # Quotes and a block's header are not part of the text, and a comment ends a plain text.
        if not line or not text.startswith(f" {line}", end):
            return
        if line.startswith("- "):
            column = lines[number].index("-") + 1
            yield Place(place.source, number + 1, column)
        end += 1 + len(line)
