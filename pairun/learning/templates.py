"""The template of a line: its words, with numbers, paths, addresses and other values masked.

A template is the key of a cluster, and gives a rule its pattern. These few kinds of masks join the
lines that one statement of a program prints. Grouping by similarity, as in Drain (He et al.,
ICWS'17), would also join different messages, which one rule must not match.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from pairun.secrets.forms import MASK

MAX_VALUES = 6
"""The maximum number of values in a pattern; of a longer line only the beginning is used."""

_MAX_CHARS = 240
_VARIABLE = re.compile(
    rf"(?P<secret>{re.escape(MASK)})"
    r"|(?P<uuid>\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b)"
    r"|(?P<address>\b[a-z][a-z0-9+.-]{1,20}://[^\s'\"<>]{1,400}"
    r"|\b\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?\b|(?<![\w:])\[?[0-9a-f]{0,4}(?::[0-9a-f]{0,4}){3,7}\]?(?![\w:]))"
    r"|(?P<path>(?<![\w<])(?:~|\.{1,2})?(?:/[\w.@+=-]{1,120}){2,40}/?|(?<![\w<])/[\w.@+=-]{3,120})"
    r"|(?P<hex>\b0[xX][0-9a-fA-F]+\b|\b(?=[a-fA-F]*\d)[0-9a-fA-F]{8,}\b)"
    r"|(?P<id>\b(?=\w*\d)(?=\w*[A-Za-z])\w{20,}\b)"
    r"|(?P<number>\d+(?:[.,:]\d+)*)"
)
_PATTERNS = {
    "secret": r"\S{1,200}",
    "uuid": r"[0-9a-fA-F-]{36}",
    "address": r"[^\s'\"<>]{3,400}",
    "path": r"[\w/.@+=~-]{2,400}",
    "hex": r"\w{3,80}",
    "id": r"\w{20,200}",
    "number": r"[\d.,:]{1,40}",
}
_SPECIAL = re.compile(r"[\\.^$*+?{}\[\]|()]")


def template_of(text: str) -> str:
    """A line with each value replaced by a mask such as ``<number>`` or ``<path>``.

    Args:
        text: the line, without prefixes; its secrets are already masked.
    """
    return "".join(f"<{part}>" if kind else part for kind, part in _parts(text))


def pattern_of(text: str) -> str:
    """A regular expression that matches the lines with the template of this one.

    Args:
        text: as for `template_of`.
    """
    parts: list[str] = []
    values = 0
    for kind, part in _parts(text[:_MAX_CHARS]):
        if kind:
            values += 1
            if values > MAX_VALUES:
                break
        parts.append(_PATTERNS[part] if kind else _SPECIAL.sub(r"\\\g<0>", part))
    # a value at the end adds nothing, and may be cut off
    while len(parts) > 1 and (parts[-1] in _PATTERNS.values() or not parts[-1].strip()):
        parts.pop()
    return "".join(parts).strip()


def words_of(text: str) -> list[str]:
    """The words of a line that are not values, in lower case."""
    literal = " ".join(part for kind, part in _parts(text) if not kind)
    return [word.lower() for word in re.findall(r"[A-Za-z]{3,}", literal)]


def with_other_numbers(text: str) -> str:
    """The same message with other numbers; without numbers, with a logger's prefix."""
    changed = re.sub(r"\d", lambda digit: str((int(digit[0]) + 1) % 10), text)
    return changed if changed != text else f"ERROR: {text}"


def _parts(text: str) -> Iterator[tuple[bool, str]]:
    """The pieces of a line: whether each is a value, and its kind or words."""
    at = 0
    for match in _VARIABLE.finditer(text):
        if match.start() > at:
            yield False, text[at : match.start()]
        assert match.lastgroup
        yield True, match.lastgroup
        at = match.end()
    if at < len(text):
        yield False, text[at:]
