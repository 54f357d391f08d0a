"""Documents as trees in which every part knows the start and end of its text.

`pairun.playbook.document` reads a document for its values; this module is for edits of its text.
So it keeps anchors, aliases and merges, and a file may have several documents.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import attrs

from pairun.base.foreignjson import parse_record
from pairun.errors import Place, Source


@attrs.define(eq=False)
class Part:
    """A part of a document.

    Attributes:
        start: where its text starts; for a block collection, at its first key or dash.
        end: where its text ends; a collection in block style ends with its last part.
        place: of its first character, for messages.
    """

    start: int
    end: int
    place: Place

    def plain(self) -> Any:
        """The value, without places."""
        raise NotImplementedError


@attrs.define(eq=False)
class ScalarPart(Part):
    """A scalar.

    Attributes:
        is_block: whether it is a block scalar (``|`` or ``>``).
        keeps: whether the block keeps the blank lines after it (``|+``).
    """

    value: Any
    is_block: bool = False
    keeps: bool = False

    def plain(self) -> Any:
        """The value."""
        return self.value


class Entry(NamedTuple):
    """A key with its value."""

    key: ScalarPart
    value: Part


@attrs.define(eq=False)
class Mapping(Part):
    """A mapping.

    Attributes:
        flow: whether it is in flow style (braces).
        entries: in the order of the text, including merges (``<<``).
    """

    flow: bool
    entries: list[Entry] = attrs.field(factory=list)

    def own(self, key: str) -> Entry | None:
        """The mapping's own entry, without merges; or None."""
        return next((e for e in self.entries if e.key.value == key), None)

    def get(self, key: str) -> Part | None:
        """The value of a key, including merged ones, with an alias resolved; or None."""
        return next((target(e.value) for e in self._all() if e.key.value == key), None)

    def _all(self) -> Iterator[Entry]:
        """Its own entries, then the merged ones: of equal keys, the first counts."""
        yield from (e for e in self.entries if e.key.value != "<<")
        for entry in self.entries:
            if entry.key.value == "<<":
                value = target(entry.value)
                for part in value.items if isinstance(value, Sequence) else [value]:
                    if isinstance(merged := target(part), Mapping):
                        yield from merged._all()

    def plain(self) -> dict[str, Any]:
        """The value, with merges resolved."""
        return {key: value.plain() for key, value in self.values().items()}

    def values(self) -> dict[str, Part]:
        """The values of all keys, including merged ones."""
        found: dict[str, Part] = {}
        for entry in self._all():
            found.setdefault(str(entry.key.value), entry.value)
        return found


@attrs.define(eq=False)
class Sequence(Part):
    """A list.

    Attributes:
        flow: whether it is in flow style (brackets).
    """

    flow: bool
    items: list[Part] = attrs.field(factory=list)

    def plain(self) -> list[Any]:
        """The value."""
        return [item.plain() for item in self.items]


@attrs.define(eq=False)
class Alias(Part):
    """An alias, and the part that it refers to."""

    part: Part

    def plain(self) -> Any:
        """The value of the part that it refers to."""
        return self.part.plain()


_BLANKS = re.compile(r"(?:\s|#[^\n]*)*+")
_NAMED = re.compile(r"(?:\s|#[^\n]*|[&!]\S*)*+")


def after_blanks(text: str, at: int, *, named: bool = False) -> int:
    """The position of the first character that is neither blank nor part of a comment."""
    match = (_NAMED if named else _BLANKS).match(text, at)
    assert match is not None  # the expression also matches an empty text
    return match.end()


def target(part: Part) -> Part:
    """The part that an alias refers to; any other part itself."""
    return part.part if isinstance(part, Alias) else part


def mappings_in(part: Part | None) -> list[Mapping]:
    """The mappings in a list, with aliases resolved; empty if the part is not a list."""
    items = part.items if isinstance(part, Sequence) else []
    return [item for item in map(target, items) if isinstance(item, Mapping)]


def name_of(part: Part) -> str:
    """The ``name`` in a mapping; empty if there is none."""
    part = target(part)
    name = part.get("name") if isinstance(part, Mapping) else None
    return str(name.plain()) if name else ""


class Tree(NamedTuple):
    """The documents of one text.

    Attributes:
        source: the text, with its name.
        documents: the root of each document that is not empty.
    """

    source: Source
    documents: list[Part]

    @property
    def text(self) -> str:
        """The text."""
        return self.source.text

    @property
    def is_json(self) -> bool:
        """Whether the text is one JSON document, and must stay one."""
        return parse_record(self.text) is not None
