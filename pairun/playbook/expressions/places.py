"""Where in a file the expressions of a value are."""

from __future__ import annotations

from pairun.errors import Place


def inside(place: Place | None, text: str, needle: str = "{{") -> Place | None:
    """The place of the first expression in a value, if the value's own line shows it."""
    if place is None:
        return None
    head = place.source.line(place.line)[place.column - 1 :]
    # The text of a block scalar starts on the line below its sign.
    last = place.line + (text.count("\n") + 1 if head[:1] in ("|", ">", '"', "'", "") else 0)
    for line in range(place.line, last + 1):
        start = place.column - 1 if line == place.line else 0
        at = place.source.line(line).find(needle, start)
        if at >= 0:
            return Place(place.source, line, at + 1)
    return place


def broken(place: Place | None, text: str, number: int) -> Place | None:
    """The place of a syntax error; a literal block keeps the lines of the text."""
    if place is None or place.source.line(place.line)[place.column - 1 :][:1] != "|":
        tags = [tag for tag in ("{{", "{%") if tag in text]
        return inside(place, text, min(tags, key=text.index, default="{{"))
    line = place.source.line(place.line + number)
    positions = [at for tag in ("{{", "{%") if (at := line.find(tag)) >= 0]
    return Place(
        place.source,
        place.line + number,
        min(positions, default=len(line) - len(line.lstrip())) + 1,
    )
