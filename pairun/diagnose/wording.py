"""The hashed words of a message: what a classifier sees of it.

Words, their first five letters, and pairs of both are hashed to 15 bits. Numbers, folders and
hexadecimal values do not count.
"""

from __future__ import annotations

import itertools
import re
import zlib

BITS = 15
"""How many bits a feature has."""

_STEM = 5
_VALUE = re.compile(r"\b(?:0x)?[0-9a-fA-F]{7,}\b|\b0x[0-9a-fA-F]+\b|(?:[\w.~-]*/)+(?=[\w.-]*)")
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_WORD = re.compile(r"[A-Za-z]{2,}")
_COMMON = frozenset(
    (
        "the", "an", "of", "to", "in", "is", "was", "be", "been", "for", "on", "at", "by", "and", "or", "it", "this",
        "that", "with", "as", "are", "has", "have", "had", "from", "if", "you", "your", "we", "its",
    )
)  # fmt: skip
"""Words that any message has."""


def words_of(text: str) -> list[str]:
    """The words of a message in lower case, without values; ``CamelCase`` is two words."""
    spaced = _HUMP.sub(" ", _VALUE.sub(" ", text).replace("'", ""))
    return [word.lower() for word in _WORD.findall(spaced)]


def telling_words(text: str) -> list[str]:
    """The words of a message that not any message has."""
    return [word for word in words_of(text) if word not in _COMMON]


def features_of(text: str) -> tuple[int, ...]:
    """The hashed features of a message, sorted, each once."""
    words = words_of(text)
    telling = [word for word in words if word not in _COMMON]
    names = {f"w{word}" for word in words}
    names.update(f"s{word[:_STEM]}" for word in telling if len(word) > _STEM)
    names.update(f"b{one} {two}" for one, two in itertools.pairwise(words))
    names.update(f"k{one[:_STEM]} {two[:_STEM]}" for one, two in itertools.pairwise(telling))
    return tuple(sorted({zlib.crc32(name.encode()) & ((1 << BITS) - 1) for name in names}))
