"""The rule table that init writes for PID 1: plain data, and the words that each rule needs."""

from __future__ import annotations

import math
import re
import sys
import time
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from pairun.base.foreignjson import parse_json
from pairun.diagnose import segments
from pairun.diagnose import systemfacts as facts
from pairun.diagnose.classes import CLASSES
from pairun.diagnose.lines import HEADER

Clock = Callable[[], float]
"""Seconds, as ``time.monotonic`` within a grace time, or ``time.process_time`` on the command line."""


class SearchLimit(NamedTuple):
    """The time limit of a search for reasons.

    Attributes:
        until: the clock's value at the limit, in seconds.
        clock: returns the time.
    """

    until: float = math.inf
    clock: Clock = time.monotonic

    @classmethod
    def after(cls, seconds: float, clock: Clock) -> SearchLimit:
        """The limit in so many seconds from now, on a clock."""
        return cls(clock() + seconds, clock)

    def is_over(self, spare_s: float = 0.0) -> bool:
        """Whether the limit plus ``spare_s`` seconds is exceeded."""
        return self.clock() > self.until + spare_s


NO_LIMIT = SearchLimit()


SCHEMA_VERSION = 1

WEIGHTS: Mapping[str, int] = {
    "cause": 90,
    "end": 74,
    "code": 75,
    "consequence": 45,
    "noise": 0,
}
"""The weight of a rule by its role, unless the rule overrides it.

``cause``: what went wrong. ``end``: what stopped the job from outside. ``code``: an exception of
the job's code. ``consequence``: an instance failed after another one. ``noise``: never a cause.
"""

FLAGS = re.ASCII
START = 4
"""The minimum number of letters in a word, without digits."""

DIGITS = b"0123456789"
_PIECE_BYTES = 1 << 16
_TAIL_BYTES = 1 << 20
_TABLE_BYTES = 16 << 20
_BREAK = re.compile(rb"[\r\n]")
_MAX_SHAPES = 20_000
_MAX_SPANS = 3000
_KEPT_FIRST, _KEPT_LAST = 8, 8


class Rule(NamedTuple):
    """One rule, already checked by init.

    Attributes:
        id: its name.
        klass: the failure class.
        role: one of `WEIGHTS`.
        weight: 0 to 100.
        fault: one of `FAULTS`.
        retry: one of `RETRIES`, or None.
        advice: what to do.
        headline: what happened, with capture names in braces; may be empty.
        is_warning: the message looks like a warning, so that form does not lower its weight.
        near: an expression that one of the lines above must match; may be empty.
        unless: an expression that no line nearby may match; may be empty.
    """

    id: str
    klass: str
    role: str
    weight: int
    fault: str
    retry: str | None
    advice: str
    headline: str
    is_warning: bool
    near: str = ""
    unless: str = ""


class RuleMatch(NamedTuple):
    """A rule and its match in a line."""

    rule: Rule
    match: re.Match[str]


class Table:
    """Rules, ready to match.

    Args:
        data: the table as init wrote it.

    Raises:
        ValueError: the data have another version, or are not a table.
    """

    def __init__(self, data: Mapping[str, Any]) -> None:
        if data.get("schema") != SCHEMA_VERSION:
            raise ValueError("not a table of rules of this version")
        self.exit_codes: Mapping[str, int] = data["exit_codes"]
        self.code_files: Mapping[str, str] = data.get("code_files", {})
        self.rules = {each["id"]: make_rule(each) for each in data["rules"]}
        self._patterns: list[tuple[Rule, str]] = []
        self._compiled: dict[int, re.Pattern[str]] = {}
        self._by_word: dict[str, list[int]] = {}
        for each in data["rules"]:
            for pattern in each["patterns"]:
                number = len(self._patterns)
                self._patterns.append((self.rules[each["id"]], pattern["regex"]))
                for word in pattern["words"]:
                    self._by_word.setdefault(word, []).append(number)
        self._by_start: dict[str, list[str]] = {}
        for word in self._by_word:
            self._by_start.setdefault(word[:START], []).append(word)
        # four bytes in UTF-8 may be fewer than four letters
        self._short = [word for word in self._by_word if len(word) < START]
        self._holds = _finder([*self._by_word, HEADER.lower(), *facts.WORDS, *segments.WORDS])

    def lines(self, data: bytes, limit: SearchLimit = NO_LIMIT) -> list[tuple[int, int]]:
        """The offsets of lines that contain a word of a rule, a fact or an attempt.

        Each is the start and the end, without the newline.

        Lines that differ only in their digits count as one shape: the first and the last 8 are
        returned. A carriage return also ends a line.

        Args:
            data: the log.
            limit: when to skip to the log's last MiB.
        """
        known: dict[bytes, _Kept | None] = {}
        at, size = 0, len(data)
        while at < size:
            if limit.is_over():
                at, limit = max(at, size - _TAIL_BYTES), NO_LIMIT
            cut = _BREAK.search(data, at + _PIECE_BYTES, at + 4 * _PIECE_BYTES)
            end = cut.end() if cut else min(size, at + 4 * _PIECE_BYTES)
            piece = data[at:end].replace(b"\r", b"\n")
            shapes = piece.lower().translate(None, DIGITS).split(b"\n")
            start = at
            for raw, shape in zip(piece.split(b"\n"), shapes, strict=True):
                try:
                    kept = known[shape]
                except KeyError:
                    if len(known) > _MAX_SHAPES:
                        known = _trimmed(known)
                    kept = known[shape] = _Kept() if self._holds(shape) else None
                if kept is not None:
                    kept.add(start, start + len(raw))
                start += len(raw) + 1
            at = end
        spans = sorted(span for kept in known.values() if kept is not None for span in kept.spans())
        if len(spans) <= 3 * _MAX_SPANS:
            return spans
        return spans[:_MAX_SPANS] + spans[-2 * _MAX_SPANS :]

    def matches(self, text: str) -> list[RuleMatch]:
        """The rules that match a line; one entry for each pattern that matches."""
        lower = text.lower()
        starts = {lower[n : n + START] for n in range(len(lower) - START + 1)}
        numbers: set[int] = set()
        words = [w for start in starts & self._by_start.keys() for w in self._by_start[start]]
        for word in words + self._short:
            if word in lower:
                numbers.update(self._by_word[word])
        matches = []
        for number in sorted(numbers):
            rule, regex = self._patterns[number]
            compiled = self._compiled.get(number)
            if compiled is None:
                # compiled on first use: most patterns are never needed
                compiled = self._compiled[number] = re.compile(regex, FLAGS)
            if match := compiled.search(text):
                matches.append(RuleMatch(rule, match))
        return matches


def _trimmed(known: dict[bytes, _Kept | None]) -> dict[bytes, _Kept | None]:
    """The shapes that contain a word; if there are very many, the first and the last ones."""
    relevant = [(shape, kept) for shape, kept in known.items() if kept is not None]
    if len(relevant) > 2 * _MAX_SPANS:
        relevant = relevant[:_MAX_SPANS] + relevant[-_MAX_SPANS:]
    return dict(relevant)


class _Kept:
    """The first and the last lines of one shape."""

    __slots__ = ("first", "last")

    def __init__(self) -> None:
        self.first: list[tuple[int, int]] = []
        self.last: deque[tuple[int, int]] | None = None

    def add(self, start: int, end: int) -> None:
        if len(self.first) < _KEPT_FIRST:
            self.first.append((start, end))
        elif self.last is None:
            self.last = deque([(start, end)], maxlen=_KEPT_LAST)
        else:
            self.last.append((start, end))

    def spans(self) -> Iterator[tuple[int, int]]:
        yield from self.first
        yield from self.last or ()


def parse_table(packed: bytes) -> Table | None:
    """Parse a table of rules that init wrote: JSON, compressed by zlib; None if it is not usable."""
    try:
        return Table(parse_json(zlib.decompressobj().decompress(packed, _TABLE_BYTES)))
    except (ValueError, KeyError, TypeError, AttributeError, zlib.error):
        return None


def make_rule(each: Mapping[str, Any]) -> Rule:
    """Make a rule from its entry in a file; defaults come from its class and its role."""
    kind = CLASSES[each["class"]]
    return Rule(
        id=each["id"],
        klass=each["class"],
        role=each["role"],
        weight=each.get("weight", WEIGHTS[each["role"]]),
        fault=each.get("fault", kind.fault),
        retry=each.get("retry", kind.retry),
        advice=each.get("tell", kind.advice),
        headline=each.get("headline", ""),
        is_warning=each.get("warning", False),
        near=each.get("near", ""),
        unless=each.get("unless", ""),
    )


def _finder(words: Iterable[str]) -> Callable[[bytes], bool]:
    """Make a test for lower-case lines without digits: whether one contains one of the words."""
    forms = {w.encode().translate(None, DIGITS) for w in words}
    if "_pairun_scan" in sys.builtin_module_names:
        import _pairun_scan  # type: ignore[import-not-found]

        spans = _pairun_scan.Scanner(sorted(forms, key=len, reverse=True)).spans
        return lambda line: bool(spans(line, True)[0])
    by_start: dict[bytes, list[bytes]] = {}
    for form in forms:
        by_start.setdefault(form[:START], []).append(form)

    def holds(line: bytes) -> bool:
        starts = {line[n : n + START] for n in range(len(line) - START + 1)}
        return any(f in line for start in starts & by_start.keys() for f in by_start[start])

    return holds
