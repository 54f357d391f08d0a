"""Finds forms of secrets in bytes.

It ignores two things inside a text: escape codes for colours, and the line breaks of wrapped
base64. These are seams: a form is found even if seams split it.
"""

from __future__ import annotations

import array
import re
import sys
from collections.abc import Iterable
from typing import Protocol

from pairun.base.escapes import ESCAPE

Span = tuple[int, int]
Data = bytes | bytearray | memoryview

WRAPPED = 16
"""The shortest line that counts as wrapped base64: tools wrap at 60 columns (Ruby), 64 (PEM) or 76
(base64(1)), people at other widths. A shorter line may be a word of any text."""

MAX_INDENT = 64
"""How many blanks before a wrapped line count as its indentation."""

_BASE64 = rb"A-Za-z0-9+/_-"
_ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/_-"
_SEAM = re.compile(
    b"|".join(
        # match the line end first: a lookbehind at every byte is slow
        [ESCAPE.encode()]
        + [
            rb"%s(?<=[%s]{%d}%s)[ \t]{0,%d}" % (end, _BASE64, WRAPPED, end, MAX_INDENT)
            for end in (rb"\n", rb"\r\n")
        ]
        + [rb"\r\Z(?<=[%s]{%d}\r)" % (_BASE64, WRAPPED)]
    ),
    re.DOTALL,
)
_SIMPLE = bytes(
    ord("A") if byte in _ALPHABET else ord("\n") if byte == ord("\r") else byte
    for byte in range(256)
)
_START = 4
_MANY = 1000
"""Above this number of forms, a search for each costs more than all starts in the text."""
_FULL_LINE = b"A" * WRAPPED + b"\n"


class Scanner(Protocol):
    """Searches bytes for forms; made from the forms, longest first."""

    def spans(self, data: Data, final: bool, /) -> tuple[list[Span], int]:
        """Find every form; of those that overlap the first, of those at one place the longest.

        Args:
            data: the bytes to search.
            final: no more bytes follow.

        Returns:
            The start and end of each, and how many bytes of ``data`` were searched. The remaining
            bytes may start a form: prepend them to the next piece.
        """
        ...

    def joined(self, data: Data, before: int, /) -> tuple[bytes, bytes] | None:
        """Remove the seams, which may split a form.

        Args:
            data: the bytes to search.
            before: how many characters of base64 precede ``data`` on the same line.

        Returns:
            The remaining bytes, and the seams: for each its position in the remaining bytes and its
            length, in native ``Py_ssize_t``. None if there are no seams. Most colours split no
            form, so a scanner may keep a seam that no form crosses, to avoid a second search.
        """
        ...


class PythonScanner:
    """The `Scanner` that is used if the one in C is not linked in.

    One search per form is far faster than one expression for all: each search runs at the speed of
    C, and skips what cannot match.
    """

    def __init__(self, forms: list[bytes]) -> None:
        self._forms = forms
        self._by_start: dict[bytes, list[bytes]] = {}
        for form in forms:
            start = form[:_START] if len(form) >= _START else b""
            self._by_start.setdefault(start, []).append(form)
        self._firsts = {form[:1] for form in forms}
        self._pairs = {form[at : at + 2] for form in forms for at in range(len(form) - 2)}

    def spans(self, data: Data, final: bool, /) -> tuple[list[Span], int]:
        """See `Scanner`."""
        data = bytes(data)
        end = len(data) if final else len(data) - self._held(data)
        chosen = first_of(self._matches(data), end)
        return chosen, max(end, chosen[-1][1]) if chosen else end

    def joined(self, data: Data, before: int, /) -> tuple[bytes, bytes] | None:
        """See `Scanner`."""
        data = bytes(data)
        line_before = b"A" * min(before, WRAPPED)
        if not (
            b"\x1b" in data
            or _FULL_LINE in data.translate(_SIMPLE)
            or (before and _FULL_LINE in (line_before + data[:WRAPPED]).translate(_SIMPLE))
        ):
            return None
        rest, seams, position, removed = [], [], 0, 0
        for seam in _SEAM.finditer(line_before + data, len(line_before)):
            start, end = seam.start() - len(line_before), seam.end() - len(line_before)
            rest.append(data[position:start])
            seams += [start - removed, end - start]
            removed += end - start
            position = end
        if not seams:
            return None
        return b"".join((*rest, data[position:])), array.array("q", seams).tobytes()

    def _matches(self, data: bytes) -> list[Span]:
        """The position of every match of every form."""
        matches = []
        forms: Iterable[bytes] = self._forms
        if len(self._forms) > min(len(data), _MANY):
            # Search only for those whose start occurs in the text.
            present = {data[at : at + _START] for at in range(len(data))}
            starts = [b"", *(self._by_start.keys() & present)]
            forms = [form for start in starts for form in self._by_start.get(start, ())]
        for form in forms:
            at = data.find(form)
            while at >= 0:
                matches.append((at, at + len(form)))
                at = data.find(form, at + 1)
        return matches

    def _held(self, data: bytes) -> int:
        """How many bytes at the end may start a form."""
        held = int(data[-1:] in self._firsts)
        last = data[-2:]
        if last not in self._pairs:
            return held
        for form in self._forms:
            # for each form, its longest start
            at = form.rfind(last, 0, len(form) - 1)
            while at >= 0 and at + 2 > held:
                if data.endswith(form[: at + 2]):
                    held = at + 2
                    break
                at = form.rfind(last, 0, at + 1)
        return held


def first_of(spans: list[Span], end: int) -> list[Span]:
    """The first of overlapping spans that start before ``end``; of equal starts, the longest."""
    chosen: list[Span] = []
    position = 0
    for start, stop in sorted(spans, key=lambda span: (span[0], -span[1])):
        if position <= start < end:
            chosen.append((start, stop))
            position = stop
    return chosen


def make_scanner(forms: set[bytes]) -> Scanner:
    """A scanner for some forms: the one in C if it is linked in."""
    ordered = sorted(forms, key=lambda form: (-len(form), form))
    if "_pairun_scan" in sys.builtin_module_names:
        import _pairun_scan  # type: ignore[import-not-found]

        scanner: Scanner = _pairun_scan.Scanner(ordered)
        return scanner
    return PythonScanner(ordered)


def run_before(data: Data, end: int, before: int) -> int:
    """How many characters of base64, up to `WRAPPED`, precede ``end`` on its line.

    Args:
        data: some bytes.
        end: a position in them.
        before: how many characters precede the first byte on its line.
    """
    last = bytes(data[max(0, end - WRAPPED) : end])
    run = len(last) - len(last.rstrip(_ALPHABET))
    return min(WRAPPED, run + before if run == end else run)
