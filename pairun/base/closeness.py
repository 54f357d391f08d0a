"""Words that are almost another word."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable


def closest(word: str, known: Iterable[str], cutoff: float) -> str | None:
    """The known word that is most like a word; None if none is like it enough.

    Args:
        word: the word.
        known: the known words.
        cutoff: how much alike they must be at least, from 0 to 1 (`difflib.get_close_matches`).
    """
    # Most words share too few letters with any, and need no difflib: its import takes 1 ms.
    near = [each for each in known if _most_alike(word, each) >= cutoff]
    if not near:
        return None
    from difflib import get_close_matches

    return next(iter(get_close_matches(word, near, n=1, cutoff=cutoff)), None)


def _most_alike(a: str, b: str) -> float:
    """An upper bound of what difflib computes: as if the letters stood in the same order."""
    length = len(a) + len(b)
    if not length:
        return 1.0
    return 2.0 * sum((Counter(a) & Counter(b)).values()) / length
