"""Makes a line of an instance's output safe for people: no control code reaches the terminal."""

from __future__ import annotations

import re

from pairun.base.escapes import ESCAPE, visible
from pairun.volume.journal import CONDITION_IS_FALSE

_ESCAPES = re.compile(ESCAPE)
_OUTCOME = re.compile(
    r"(?=.{9})(ok {7}|changed {2}|skipped {2}|ignored {2}|failed {3}|retry {4})\S"
)
_PROGRESS = re.compile(r"progress \S+: .*[0-9] (?:bytes?|[KMGTPE]iB)(?: \([0-9]+ %\))?")
_SKIPPED = re.compile(rf"skipped  \S+: {CONDITION_IS_FALSE}")
_TAB = 8


def clean(line: bytes) -> str:
    """The text of a line as a terminal would leave it: no escape codes, progress bars resolved."""
    text = line.decode("utf-8", "replace")
    if text.isascii() and text.isprintable():
        return text
    # A terminal does not show what a carriage return overwrote, either.
    text = text.rstrip("\r").rpartition("\r")[2]
    return visible(_ESCAPES.sub("", text).expandtabs(_TAB)).replace("\n", " ")


def outcome_of(text: str) -> str:
    """The outcome at the start of a line of a phase's console, such as ``changed``; else empty."""
    match = _OUTCOME.match(text)
    return match[1].rstrip() if match else ""


def is_progress(text: str) -> bool:
    """Whether a line of a phase's console reports progress."""
    return _PROGRESS.fullmatch(text) is not None


def is_skipped_by_condition(text: str) -> bool:
    """Whether a line of a phase's console reports a task whose condition is false."""
    return _SKIPPED.fullmatch(text) is not None
