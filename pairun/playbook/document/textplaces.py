"""Finds the place of a part of a text in the YAML that contains the text."""

from __future__ import annotations

from pairun.errors import Place

_SNIPPET = 24
"""How many characters to search for when a part of a folded or quoted text is located."""


def place_in(place: Place, text: object, offset: int) -> Place:
    """The place of a character of a text; the text's own place if the lines do not show it.

    Args:
        place: of the text.
        text: the text; the place of any other value is the result.
        offset: the character's index in the value, from 0.
    """
    if not isinstance(text, str) or not 0 <= offset <= len(text):
        return place
    number = text.count("\n", 0, offset)
    column = offset - (text.rfind("\n", 0, offset) + 1)
    begin, end = offset - column, text.find("\n", offset)
    written = text[begin : len(text) if end < 0 else end]
    lines = place.source.lines
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
    return _searched(place, written, column, number)


def _searched(place: Place, written: str, column: int, number: int) -> Place:
    """The first place that matches the following text, in the lines that the value can span."""
    snippet = written[column : column + _SNIPPET].split(" ", maxsplit=1)[0]
    count = 2 * number + written.count(" ") + 3
    return (find_from(place, snippet, count) if snippet else None) or place


def find_from(place: Place, text: str, count: int) -> Place | None:
    """The first place of a text of one line, from a place on; None if there is none.

    Args:
        place: where to begin.
        text: what to search for.
        count: how many lines to search.
    """
    lines = "\n".join(place.source.lines[place.line - 1 : place.line - 1 + count])
    at = lines.find(text, place.column - 1)
    if at < 0:
        return None
    return Place(place.source, place.line + lines.count("\n", 0, at), at - lines.rfind("\n", 0, at))
