"""The words that a text must contain to match a pattern, so that most patterns need no search."""

from __future__ import annotations

import re._constants as sre  # type: ignore[import-not-found]
import re._parser as sre_parser  # type: ignore[import-not-found]
from collections.abc import Callable, Iterable
from typing import Any

from pairun.diagnose.table import FLAGS

MIN_WORD = 3
MAX_WORDS = 64
_SURROGATES = range(0xD800, 0xE000)
"""No text contains them, but an escape in a pattern may."""


def words_needed(
    pattern: str, most: int = MAX_WORDS, worth: Callable[[str], int] = len
) -> list[str] | None:
    """Lower-case words; every text that matches contains at least one of them.

    Args:
        pattern: a Python expression for `FLAGS`.
        most: maximum number of words to return.
        worth: how rare a word is; sets of rarer words are preferred.

    Returns:
        The words; None if no such set is known.
    """
    needed = _needed(sre_parser.parse(pattern, FLAGS), worth)
    if needed is None or len(needed) > most:
        return None
    return sorted(word.encode().lower().decode() for word in needed)


def _needed(items: Iterable[Any], worth: Callable[[str], int]) -> set[str] | None:
    """The best set of words of which a sequence needs one."""
    sets: list[set[str]] = []
    word = ""

    def end_word() -> None:
        nonlocal word
        if len(word) >= MIN_WORD:
            sets.append({word})
        word = ""

    for operation, argument in items:
        if operation is sre.LITERAL and argument not in _SURROGATES:
            word += chr(argument)
            continue
        end_word()
        inner: set[str] | None = None
        if operation is sre.SUBPATTERN:
            inner = _needed(argument[-1], worth)
        elif operation is sre.BRANCH:
            parts = [_needed(branch, worth) for branch in argument[1]]
            known = [p for p in parts if p is not None]
            inner = set().union(*known) if len(known) == len(parts) else None
        elif operation in (sre.MAX_REPEAT, sre.MIN_REPEAT) and argument[0] > 0:
            inner = _needed(argument[-1], worth)
        if inner:
            sets.append(inner)
    end_word()
    return max(sets, key=lambda s: min(map(worth, s)), default=None)
