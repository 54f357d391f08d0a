"""Documents as trees in which every part knows the start and end of its text.

`pairun.playbook.document` reads a document for its values; this module is for edits of its text.
So it keeps anchors, aliases and merges, and a file may have several documents.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pairun.base.foreignjson import parse_record
from pairun.errors import Place, Source


class Part:
    """A part of a document.

    Attributes:
        start: where its text starts; for a block collection, at its first key or dash.
        end: where its text ends; a collection in block style ends with its last part.
        place: of its first character, for messages.
        aliased: whether an alias refers to it.
    """

    __slots__ = ("aliased", "end", "place", "start")

    def __init__(self, start: int, end: int, place: Place) -> None:
        self.start, self.end, self.place = start, end, place
        self.aliased = False

    def plain(self) -> Any:
        """The value, without places."""
        raise NotImplementedError


class Scalar(Part):
    """A scalar.

    Attributes:
        value: its value.
        is_block: whether it is a block scalar (``|`` or ``>``).
        keeps: whether the block keeps the blank lines after it (``|+``).
    """

    __slots__ = ("is_block", "keeps", "value")

    def __init__(self, start: int, end: int, place: Place, value: Any) -> None:
        super().__init__(start, end, place)
        self.value = value
        self.is_block = False
        self.keeps = False

    def plain(self) -> Any:
        """The value."""
        return self.value


class Entry:
    """A key with its value."""

    __slots__ = ("key", "value")

    def __init__(self, key: Scalar, value: Part) -> None:
        self.key, self.value = key, value


class Mapping(Part):
    """A mapping.

    Attributes:
        entries: in the order of the text, including merges (``<<``).
        flow: whether it is in flow style (braces).
    """

    __slots__ = ("entries", "flow")

    def __init__(self, start: int, end: int, place: Place, *, flow: bool) -> None:
        super().__init__(start, end, place)
        self.entries: list[Entry] = []
        self.flow = flow

    def own(self, key: str) -> Entry | None:
        """The mapping's own entry, without merges; or None."""
        return next((e for e in self.entries if e.key.value == key), None)

    def get(self, key: str) -> Part | None:
        """The value of a key, including merged ones, with an alias resolved; or None."""
        if (entry := self.own(key)) is not None:
            return target(entry.value)
        for merged in self._merged():
            if (value := merged.get(key)) is not None:
                return value
        return None

    def _merged(self) -> Iterator[Mapping]:
        for entry in self.entries:
            if entry.key.value == "<<":
                value = target(entry.value)
                for part in value.items if isinstance(value, Sequence) else [value]:
                    if isinstance(merged := target(part), Mapping):
                        yield merged

    def plain(self) -> dict[str, Any]:
        """The value, with merges resolved."""
        out = {str(e.key.value): e.value.plain() for e in self.entries if e.key.value != "<<"}
        for merged in self._merged():
            for key, value in merged.plain().items():
                out.setdefault(key, value)
        return out


class Sequence(Part):
    """A list.

    Attributes:
        items: its items.
        flow: whether it is in flow style (brackets).
    """

    __slots__ = ("flow", "items")

    def __init__(self, start: int, end: int, place: Place, *, flow: bool) -> None:
        super().__init__(start, end, place)
        self.items: list[Part] = []
        self.flow = flow

    def plain(self) -> list[Any]:
        """The value."""
        return [item.plain() for item in self.items]


class Alias(Part):
    """An alias, and the part that it refers to."""

    __slots__ = ("part",)

    def __init__(self, start: int, end: int, place: Place, part: Part) -> None:
        super().__init__(start, end, place)
        self.part = part

    def plain(self) -> Any:
        """The value of the part that it refers to."""
        return self.part.plain()


_BLANKS = re.compile(r"(?:\s|#[^\n]*)*+")
_NAMED = re.compile(r"(?:\s|#[^\n]*|[&!]\S*)*+")


def after_blanks(text: str, at: int, *, named: bool = False) -> int:
    """The position of the first character that is neither blank nor part of a comment.

    Args:
        text: the text.
        at: where to start, outside of a comment.
        named: also skip anchors and tags.
    """
    match = (_NAMED if named else _BLANKS).match(text, at)
    assert match is not None  # the expression also matches an empty text
    return match.end()


def target(part: Part) -> Part:
    """The part that an alias refers to; any other part itself."""
    return part.part if isinstance(part, Alias) else part


class Tree:
    """The documents of one text.

    Attributes:
        source: the text, with its name.
        documents: the root of each document that is not empty.
    """

    def __init__(self, source: Source, documents: list[Part]) -> None:
        self.source = source
        self.documents = documents

    @property
    def text(self) -> str:
        """The text."""
        return self.source.text

    @property
    def is_json(self) -> bool:
        """Whether the text is one JSON document, and must stay one."""
        return parse_record(self.text) is not None
