"""Finds the place of a part of a text in the YAML that contains the text."""

from __future__ import annotations

from pairun.errors import Place
from pairun.playbook.document.reading import Node

_SNIPPET = 24
"""How many characters to search for when a part of a folded or quoted text is located."""


def place_in(node: Node, offset: int) -> Place:
    """The place of a character of a text; the text's own place if the lines do not show it.

    Args:
        node: the node whose value is the text.
        offset: the character's index in the value, from 0.
    """
    text, place = node.value, node.place
    if not isinstance(text, str) or not 0 <= offset <= len(text):
        return place
    number = text.count("\n", 0, offset)
    column = offset - (text.rfind("\n", 0, offset) + 1)
    written = text.split("\n")[number]
    lines = place.source.text.split("\n")
    header = lines[place.line - 1][place.column - 1 :]
    if header.startswith("|"):
        line = place.line + 1 + number
        raw = lines[line - 1].rstrip("\r") if line <= len(lines) else ""
        if raw.endswith(written):
            return Place(place.source, line, len(raw) - len(written) + column + 1)
    elif number == 0:
        quote = 1 if header[:1] in ("'", '"') else 0
        if header[quote:].startswith(written[: column + 1]):
            return Place(place.source, place.line, place.column + quote + column)
    return _searched(node, written, column, number, lines)


def _searched(node: Node, written: str, column: int, number: int, lines: list[str]) -> Place:
    """The first place that matches the following text, in the lines that the value can span."""
    place, snippet = node.place, written[column : column + _SNIPPET].split(" ", maxsplit=1)[0]
    last = min(len(lines), place.line + 2 * number + written.count(" ") + 2)
    for line in range(place.line, last + 1) if snippet else ():
        begin = place.column - 1 if line == place.line else 0
        at = lines[line - 1].find(snippet, begin)
        if at >= 0:
            return Place(place.source, line, at + 1)
    return place
