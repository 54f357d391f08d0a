"""Problems: a stable id, one sentence, the place with a caret, a hint.

Every message about bad input is a `Problem`. PID 1 uses this file, so it may import only the
standard library.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate, islice
from typing import Literal, NamedTuple, Self

from pairun.base.escapes import visible

Severity = Literal["error", "warning"]


class Source:
    """A text that pairun read: its origin and its layer.

    Attributes:
        file: its name for people (a path, ``-``, ``config annotation``).
        layer: ``built-in``, ``cluster``, ``plugin``, ``engine``, ``job`` or
            ``manifest``, which is no layer of a playbook.
        text: the decoded text; empty if it could not be decoded.
    """

    __slots__ = (
        "_concealed", "_hidden", "_lines", "_parts", "_searched", "_shaped", "file", "layer", "text",
    )  # fmt: skip

    def __init__(self, file: str, layer: str, text: str) -> None:
        self.file = file
        self.layer = layer
        self.text = text
        self._lines: list[str] | None = None
        self._hidden: set[int] = set()
        self._shaped: set[int] | None = None
        self._concealed: set[str] = set()
        self._parts: set[str] = set()
        self._searched: set[str] = set()

    @property
    def concealed(self) -> frozenset[str]:
        """Parts of the text that a vault must mask wherever they appear."""
        return frozenset(self._concealed)

    def conceal(self, texts: Iterable[str]) -> None:
        """Exclude parts of the text, and the lines that contain them, from all output."""
        new = {t for t in texts if t} - self._concealed
        self._concealed |= new
        parts = {p.strip() for t in new for p in t.splitlines()}
        self._parts |= {p for p in parts if len(p) >= _LEAST_CONCEALED}

    @property
    def lines(self) -> list[str]:
        """The lines as libyaml counts them, including secret ones."""
        if self._lines is None:
            from pairun.secrets.shapes import yaml_lines

            self._lines = yaml_lines(self.text)
        return self._lines

    def line(self, number: int) -> str:
        """The text of line ``number`` (from 1); empty if there is no such line or it is secret."""
        if not 1 <= number <= len(self.lines) or self._is_secret(number):
            return ""
        return self.lines[number - 1].rstrip("\r")

    def hide(self, first: int, last: int) -> None:
        """Exclude the lines ``first`` to ``last`` (from 1, inclusive) from every excerpt."""
        self._hidden.update(range(first, last + 1))

    def _is_secret(self, number: int) -> bool:
        if self._shaped is None:
            # Hide a job's secrets even if the text does not parse. Import it here: every process
            # imports this file, and few show a line of a source.
            from pairun.secrets.shapes import secret_lines

            self._shaped = secret_lines(self.text)
        # Search only now, and for each part once: a text may contain thousands of secrets.
        parts, self._parts = self._parts - self._searched, set()
        self._searched |= parts
        if len(self._searched) > _MOST_SEARCHED:
            return True
        if parts:
            self._hidden |= _lines_with(self.lines, parts)
        return number in self._hidden or number in self._shaped


_LEAST_CONCEALED = 4
_MOST_SEARCHED = 200
"""A text with more secrets than this shows no line at all."""


def _lines_with(lines: list[str], parts: set[str]) -> set[int]:
    """The lines (from 1) that contain one of the parts."""
    text = "\n".join(lines)
    starts = list(accumulate((len(line) + 1 for line in lines), initial=0))
    numbers: set[int] = set()
    for part in parts:
        at = text.find(part)
        while at >= 0:
            number = bisect_right(starts, at)
            numbers.add(number)
            at = text.find(part, starts[number])
    return numbers


class Place(NamedTuple):
    """A position in a `Source`; line and column count from 1; line 0 is the whole source."""

    source: Source
    line: int
    column: int

    def __str__(self) -> str:
        where = f":{self.line}:{self.column}" if self.line else ""
        return f"{self.source.file}{where}"


class Problem(NamedTuple):
    """One mistake, or one thing that may surprise the user.

    Attributes:
        id: the stable id; `pairun.catalogue` explains each.
        message: one sentence.
        place: its position, if it has one.
        hint: what to do.
        severity: a warning never changes an exit code.
        also: further relevant places (the policy's line, the first of two definitions).
    """

    id: str
    message: str
    place: Place | None = None
    hint: str | None = None
    severity: Severity = "error"
    also: tuple[tuple[str, Place], ...] = ()


class PairunError(Exception):
    """Unusable input: carries all problems found, not only the first."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__("; ".join(p.message for p in problems))
        self.problems = problems

    @classmethod
    def of(
        cls,
        id: str,  # noqa: A002 - as in `Problem`
        message: str,
        place: Place | None = None,
        hint: str | None = None,
    ) -> Self:
        """The exception for one error, with the fields of its `Problem`."""
        return cls(Problem(id, message, place, hint))


class Problems:
    """Collects problems, so that a user sees all of them at once; begins with some."""

    def __init__(self, found: Iterable[Problem] = ()) -> None:
        self._found = list(found)

    def error(
        self,
        id: str,  # noqa: A002 - the word users know it by
        message: str,
        place: Place | None = None,
        hint: str | None = None,
        also: Iterable[tuple[str, Place]] = (),
    ) -> None:
        """Record an error."""
        self._found.append(Problem(id, message, place, hint, "error", tuple(also)))

    def warning(
        self,
        id: str,  # noqa: A002
        message: str,
        place: Place | None = None,
        hint: str | None = None,
    ) -> None:
        """Record a warning."""
        self._found.append(Problem(id, message, place, hint, "warning"))

    def extend(self, problems: Iterable[Problem]) -> None:
        """Add problems that were found elsewhere."""
        self._found.extend(problems)

    def __iter__(self) -> Iterator[Problem]:
        """Every problem once, in the order of the places."""
        seen: set[object] = set()
        for p in sorted(self._found, key=_reading_order):
            key = (p.id, p.message, str(p.place))
            if key not in seen:
                seen.add(key)
                yield p

    def __bool__(self) -> bool:
        return bool(self._found)

    @property
    def errors(self) -> list[Problem]:
        """The problems that stop the work."""
        return [p for p in self if p.severity == "error"]

    def raise_errors(self) -> None:
        """Raise `PairunError` with every error found so far, if there is one."""
        if errors := self.errors:
            raise PairunError(*errors)


def _reading_order(p: Problem) -> tuple[str, int, int]:
    return (p.place.source.file, p.place.line, p.place.column) if p.place else ("", 0, 0)


MOST_KNOWN = 100
"""Later known words are not compared: a job may have thousands of names, and as many mistakes."""


def nearest(word: str, known: Iterable[str], closeness: float = 0.65) -> str | None:
    """The known word closest to ``word``, if one is close enough, of the first `MOST_KNOWN`.

    Args:
        closeness: how similar the words must be, from 0 to 1.
    """
    from difflib import get_close_matches  # PID 1 does not need it

    folded = {k.lower().replace("-", "_"): k for k in islice(known, MOST_KNOWN)}
    # camelCase is the most frequent mistake of users who come from job files
    plain = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", word).lower().replace("-", "_")
    return next((folded[near] for near in get_close_matches(plain, folded, 1, closeness)), None)


def did_you_mean(word: str, known: Iterable[str]) -> str | None:
    """A hint that names the nearest known word, or lists the known words if there are few."""
    words = list(islice(known, MOST_KNOWN + 1))
    if near := nearest(word, words):
        return f"did you mean '{near}'?"
    return f"known here: {', '.join(sorted(words))}" if 0 < len(words) <= 12 else None


def concealed_in(problems: Iterable[Problem]) -> Iterator[str]:
    """The concealed parts of the texts that some problems quote, for a vault to mask."""
    for p in problems:
        for place in (p.place, *(at for _, at in p.also)):
            if place is not None:
                yield from place.source.concealed


def _plain(text: str, *_: str) -> str:
    return text


def render(p: Problem, tint: Callable[..., str] = _plain) -> str:
    """The text for people, at most five short lines per place; a vault must still mask it.

    Args:
        p: the problem.
        tint: returns a text in the colour with a name.
    """
    color = "red" if p.severity == "error" else "yellow"
    out = [f"{tint(f'{p.severity}[{p.id}]', color)}: {tint(p.message, 'bold')}"]
    if p.place:
        out += _excerpt(p.place, "", tint, color)
    for label, place in p.also:
        out += _excerpt(place, label, tint, "blue")
    if p.hint:
        out.append(f"  {tint('help', 'blue')}: {p.hint}")
    return "\n".join(out)


def _excerpt(place: Place, label: str, tint: Callable[..., str], color: str) -> list[str]:
    what = f" {label}" if label else ""
    head = f"  {tint('-->', 'blue')} {place} ({place.source.layer}){what}"
    text = place.source.line(place.line)
    if not text.strip():
        return [head]
    # Of a long line, show the part around the caret.
    start = max(0, place.column - 60) if len(text) > 90 else 0
    shown = visible(text[start : start + 90].replace("\t", " ").replace("\n", " "))
    caret = " " * (place.column - 1 - start) + tint("^", color)
    bar = tint("|", "blue")
    return [head, f"   {bar} {shown}", f"   {bar} {caret}"]
