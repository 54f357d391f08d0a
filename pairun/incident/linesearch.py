"""Searches a large log for expressions of one line: near a word, or from the end."""

from __future__ import annotations

import re
from collections.abc import Iterator

_PIECE_BYTES = 1 << 12
"""How many bytes the first step of a search from the end covers; each step has four times as many."""


def matches_near(pattern: re.Pattern[bytes], word: bytes, data: bytes) -> Iterator[re.Match[bytes]]:
    """The matches of an expression in the lines that contain a word.

    Args:
        pattern: matches within one line; each match contains the word.
        word: the word.
        data: the log.
    """
    at = data.find(word)
    while at >= 0:
        start = data.rfind(b"\n", 0, at) + 1
        end = data.find(b"\n", at)
        end = len(data) if end < 0 else end
        yield from pattern.finditer(data, start, end)
        at = data.find(word, end)


def last_match(pattern: re.Pattern[bytes], data: bytes) -> re.Match[bytes] | None:
    """The last match of an expression that matches within one line; searches from the end.

    Args:
        pattern: the expression.
        data: the log.
    """
    end, size = len(data), _PIECE_BYTES
    while end > 0:
        start = data.rfind(b"\n", 0, max(0, end - size)) + 1
        matches = list(pattern.finditer(data, start, end))
        if matches:
            return matches[-1]
        end, size = start, 4 * size
    return None
