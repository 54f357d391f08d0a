"""Chooses the column of a log that names the writer of each line, by comparison of the lines.

A column is a place in the lines or a key of the records; its values are what the lines have there. The
column of a writer has some values that come back while others write, and different writers print the
same texts. Counters (steps, epochs) go up and do not come back; modules and levels have texts of
their own. So no list of tools and loggers is needed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pairun.incident.columnvalues import (
    CLEAR,
    COMMON,
    HOST,
    LOCAL,
    SHARE,
    Column,
    Entry,
    alike,
    are_names,
    come_back,
    common,
    is_prefix,
    rated_as,
    shape_of,
)

_NEARLY_ALL, _ALL = 0.9, 0.97


class Writers(NamedTuple):
    """The column that names the writers of lines.

    Attributes:
        column: of the names or numbers.
        kind: ``rank``, ``name`` or ``pid``.
        local: of the number on the node, if only both together name a writer; else None.
        shapes: of the names, with ``#`` for numbers.
        most: the highest number, if the column has numbers.
    """

    column: Column
    kind: str
    local: Column | None = None
    shapes: frozenset[str] = frozenset()
    most: int = 0

    def has(self, value: str) -> bool:
        """Whether a value of the column is a writer, and not a word of another line."""
        if value.isdigit():
            return int(value) <= self.most
        return shape_of(value) in self.shapes

    @property
    def last_place(self) -> int:
        """The place of the last column that is needed."""
        return max(c.place for c in (self.column, self.local) if c is not None)


def writers_of(columns: Mapping[Column, Sequence[Entry]], lines: int) -> Writers | None:
    """The column that names the writers; None if no column does.

    Args:
        columns: the entries of each column, in the order of the lines; the first columns are preferred.
        lines: number of lines.
    """
    rated = {
        column: found
        for column, entries in columns.items()
        if (found := rated_as(column.key, entries, lines)) is not None
    }
    if not rated:
        return None
    # a rank that only some lines show comes after a name that nearly all have
    best = max(rated, key=lambda c: (len(columns[c]) >= _NEARLY_ALL * lines, rated[c].rating))
    sizes = {c: len({e.value for e in alike(columns[c])}) for c in rated}
    full = [c for c in rated if len(columns[c]) >= _ALL * lines and sizes[c] >= sizes[best]]
    if full and len(columns[best]) < _ALL * lines:
        best = max(full, key=lambda c: rated[c].rating)
    node, local, kind = best, None, rated[best].kind
    if rated[best].rating < CLEAR:
        pairs = (pair for other in columns for pair in ((best, other), (other, best)))
        both = next((p for p in pairs if _is_local(p[1], p[0], columns, lines)), None)
        if both is not None:
            node, local, kind = *both, "rank"
        elif best.key and (whole := Column(best.place)) in rated:
            node, kind = whole, rated[whole].kind  # gpu3 without a node is a host's name
    names = {e.value for e in alike(columns[node])}
    numbers = [int(name) for name in names if name.isdigit()]
    most = max([-1, 2 * len(numbers) - 1, *numbers]) if numbers else -1
    return Writers(node, kind, local, frozenset(map(shape_of, names)), most)


def _is_local(
    local: Column,
    node: Column,
    columns: Mapping[Column, Sequence[Entry]],
    lines: int,
) -> bool:
    """Whether a column has the number of a process on the node that another one names."""
    entries = [e for e in columns[local] if e.value.isdigit()]
    nodes = alike(columns[node])
    key, key_of_node = local.key, node.key
    if min(len(entries), len(nodes)) < SHARE * lines or LOCAL.fullmatch(key_of_node):
        return False
    if key and not LOCAL.fullmatch(key):
        return False
    if not key and any(e.in_prose for e in entries):
        return False
    if not all(e.value.isdigit() and len(e.value) < 4 for e in entries):
        return False
    names = {e.line: e.value for e in nodes}
    numbers = {int(e.value) for e in entries}
    pairs = {(names[e.line], int(e.value)) for e in entries if e.line in names}
    count = len(set(names.values()))
    is_full = (
        2 * len(pairs) > count * len(numbers) > 0
        and len(pairs) > max(count, len(numbers))
        and local != node
    )
    is_dense = len(numbers) > 1 and max(numbers) < 2 * len(numbers) and min(numbers) < 2
    are_keys = bool(key) and HOST.fullmatch(key_of_node) is not None
    is_sure = are_keys or is_prefix(entries)
    if not (is_full and is_dense and (is_sure or come_back(entries))):
        return False
    are_numbers = any(name.isdigit() for name in names.values())
    is_node = bool(HOST.fullmatch(key_of_node)) or (
        not are_numbers and are_names(Counter(names.values()))
    )
    return is_node and (bool(key) or common(entries) >= COMMON)
