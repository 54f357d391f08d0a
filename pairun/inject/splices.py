"""Changes a text at positions, and keeps the rest unchanged."""

from __future__ import annotations

from collections.abc import Sequence as Items
from typing import Any, NamedTuple

from pairun.errors import PairunError
from pairun.inject.emitting import as_block, as_json
from pairun.inject.tree import Entry, Mapping, Part, ScalarPart, Sequence, Tree, after_blanks


class _Splice(NamedTuple):
    """One change: replaces the text from ``start`` to ``end``."""

    start: int
    end: int
    depth: int
    text: str


class Splices:
    """The changes of one text.

    An addition is one or more whole lines in block style, or one element in flow style. So the
    removals of this class can restore the original text.
    """

    def __init__(self, tree: Tree) -> None:
        self._text = tree.text
        self._newline = "\r\n" if "\r\n" in tree.text else "\n"
        self._splices: list[_Splice] = []
        self._in_front: dict[int, list[tuple[str, bool]]] = {}

    def apply(self) -> str:
        """The text with all changes."""
        for position, added in self._in_front.items():
            texts = [text for text, _ in added]
            # Only the last addition knows whether the collection has more items after it.
            joined = ", ".join(texts) + ("" if added[-1][1] else ", ")
            self._splices.append(_Splice(position, position, 0, joined))
        out, at = [], 0
        # Of two additions at the end of one line, the deeper one comes first.
        for splice in sorted(self._splices, key=lambda s: (s.start, s.end, -s.depth)):
            out += [self._text[at : splice.start], splice.text]
            at = splice.end
        return "".join([*out, self._text[at:]])

    # --- additions ---

    def add_entry(self, mapping: Mapping, key: str, value: Any) -> None:
        """Add an entry to a mapping."""
        if mapping.flow:
            self._add_in_front(mapping, f"{as_json(key)}: {as_json(value)}", not mapping.entries)
            return
        indent = self._indent(mapping)
        last = mapping.entries[-1].value
        if self._takes_line_after(last):
            self._add_lines_after(last.end, as_block({key: value}, indent), 2 * len(indent))
            return
        for entry in mapping.entries:
            if self._begins_line(entry.key.start):
                lines = as_block({key: value}, indent)
                text = self._newline.join(lines) + self._newline
                at = entry.key.start - len(indent)
                self._splices.append(_Splice(at, at, 1000, text))
                return
        raise PairunError.of(
            "PR822", "there is no line after which an entry could be added", mapping.place
        )

    def add_item(self, sequence: Sequence, value: Any, *, first: bool = False) -> None:
        """Add an item to a list that has items or is in flow style.

        Args:
            first: before all others; else after them, if the text allows it there.
        """
        if sequence.flow and sequence.items and not first:
            self.insert(sequence.items[-1].end, f", {as_json(value)}")
            return
        if sequence.flow:
            self._add_in_front(sequence, as_json(value), not sequence.items)
            return
        indent = " " * self._column(sequence.start)
        lines = as_block([value], indent)
        if not first and self._takes_line_after(sequence.items[-1]):
            # A list may start at its key's column; then its items come first.
            self._add_lines_after(sequence.items[-1].end, lines, 2 * len(indent) + 1)
            return
        text = self._newline.join([lines[0].lstrip(), *lines[1:]]) + self._newline + indent
        self._splices.append(_Splice(sequence.start, sequence.start, 1000, text))

    def value_text(self, entry: Entry) -> str:
        """The text of an entry's value, and the text between it and the colon."""
        start = self._colon_end(entry)
        return self._text[start : max(start, entry.value.end)]

    def replace(self, entry: Entry, text: str) -> None:
        """Replace the text that `value_text` returns."""
        start = self._colon_end(entry)
        self._splices.append(_Splice(start, max(start, entry.value.end), 0, text))

    def insert(self, at: int, text: str) -> None:
        """Add text at a position."""
        self._splices.append(_Splice(at, at, 1000, text))

    def append(self, text: str) -> None:
        """Add text at the end."""
        self._splices.append(_Splice(len(self._text), len(self._text), -1, text))

    # --- removals ---

    def cut(self, start: int, end: int) -> None:
        """Remove a piece of the text."""
        self._splices.append(_Splice(start, end, 0, ""))

    def remove_entry(self, mapping: Mapping, entry: Entry) -> None:
        """Remove an entry of a mapping."""
        entries = mapping.entries
        index = entries.index(entry)
        following = entries[index + 1].key.start if index + 1 < len(entries) else None
        previous = entries[index - 1].value.end if index else None
        self._remove(mapping.flow, entry.key.start, entry.value.end, previous, following)

    def remove_items(self, sequence: Sequence, items: Items[Part]) -> None:
        """Remove some items of a list; a list in block style must keep at least one."""
        for item in items:
            index = sequence.items.index(item)
            start = item.start if sequence.flow else self._dash(sequence, index)
            following = None
            if index + 1 < len(sequence.items):
                following = (
                    sequence.items[index + 1].start
                    if sequence.flow
                    else self._dash(sequence, index + 1)
                )
            kept = next((p.end for p in reversed(sequence.items[:index]) if p not in items), None)
            if sequence.flow and kept is not None:
                self.cut(sequence.items[index - 1].end, item.end)
            else:
                self._remove(sequence.flow, start, item.end, kept, following)

    def _remove(
        self, flow: bool, start: int, end: int, previous: int | None, following: int | None
    ) -> None:
        if not flow and self._begins_line(start):
            self.cut(self._line_before(start), self._line_end(end))
        elif flow and following is not None:
            # The addition wrote one comma and one blank.
            comma = self._text.index(",", end) + 1
            self.cut(start, comma + (self._text[comma : comma + 1] == " "))
        elif following is not None:
            self.cut(start, following)
        else:
            self.cut(previous if previous is not None else start, end)

    # --- positions ---

    def _add_in_front(self, part: Mapping | Sequence, text: str, is_only: bool) -> None:
        opening = "{" if isinstance(part, Mapping) else "["
        at = self._text.index(opening, part.start) + 1
        self._in_front.setdefault(at, []).append((text, is_only))

    def _add_lines_after(self, end: int, lines: list[str], depth: int) -> None:
        at = self._line_end(end)
        text = "".join(self._newline + line for line in lines)
        self._splices.append(_Splice(at, at, depth, text))

    def _takes_line_after(self, part: Part) -> bool:
        """Whether adding a line after a part leaves its value unchanged."""
        last = last_scalar(part)
        if last is None or not last.is_block:
            return True
        return not last.keeps and "\n" in self._text[last.end :]

    def _indent(self, mapping: Mapping) -> str:
        return " " * self._column(mapping.start)

    def _column(self, at: int) -> int:
        return at - (self._text.rfind("\n", 0, at) + 1)

    def _begins_line(self, at: int) -> bool:
        return not self._text[self._text.rfind("\n", 0, at) + 1 : at].strip(" \ufeff")

    def _line_end(self, at: int) -> int:
        end = self._text.find("\n", at)
        if end < 0:
            return len(self._text)
        return end - 1 if self._text[end - 1] == "\r" and end > at else end

    def _line_before(self, at: int) -> int:
        """The end of the line before the line of a position."""
        end = self._text.rfind("\n", 0, at)
        if end < 0:
            return 0
        return end - 1 if self._text[end - 1 : end] == "\r" else end

    def _colon_end(self, entry: Entry) -> int:
        return self._text.index(":", entry.key.end) + 1

    def _dash(self, sequence: Sequence, index: int) -> int:
        before = sequence.items[index - 1].end if index else sequence.start
        return after_blanks(self._text, before)


def last_scalar(part: Part) -> ScalarPart | None:
    """The scalar that ends a part in block style; None if something else ends it."""
    while True:
        if isinstance(part, Mapping) and not part.flow and part.entries:
            part = part.entries[-1].value
        elif isinstance(part, Sequence) and not part.flow and part.items:
            part = part.items[-1]
        else:
            return part if isinstance(part, ScalarPart) else None
