"""Masks secrets in bytes, whole or in pieces."""

from __future__ import annotations

import array
import bisect
import itertools
from typing import Protocol, overload

from pairun.secrets.forms import MASK, MIN_BYTES
from pairun.secrets.scanner import Data, Scanner, Span, first_of, run_before

_ESC = 0x1B
_ASTERISK = 0x2A
_LARGE = 4096
"""The size in bytes from which a piece is copied to a buffer that is used again."""


class Holder(Protocol):
    """Has the secrets; it may get more later."""

    @property
    def scanner(self) -> Scanner | None:
        """Finds the secrets; None if there are none."""


def mask(scanner: Scanner, data: Data, *, final: bool, before: int = 0) -> tuple[bytes | None, int]:
    """Mask every form of a secret, including those that cross seams.

    Args:
        scanner: finds the forms.
        data: the bytes.
        final: no more bytes follow.
        before: how many characters of base64 precede ``data`` on the same line.

    Returns:
        The masked bytes, or None if there is no form; and how many bytes of ``data`` they
        represent. The remaining bytes may start a form: prepend them to the next piece. Escape
        codes within a form are kept, after the mask.
    """
    spans, end = scanner.spans(data, final)
    joined = scanner.joined(data, before)
    place = None
    if joined is not None:
        rest, seams = joined
        across, end_of_rest = scanner.spans(rest, final)
        if spans or across or end_of_rest < len(rest) or end < len(data):
            place = _Places(seams)
            end = min(end, place.of(end_of_rest))
            spans = first_of([*spans, *(place.span(span) for span in across)], end)
    if not spans:
        return None, end
    out: list[Data] = []
    position = 0
    for start, stop in spans:
        out += [data[position:start], MASK.encode()]
        out += place.escapes(data, start, stop) if place else []
        position = stop
    end = max(end, position)
    return b"".join((*out, data[position:end])), end


class _Places:
    """Maps positions in the data without seams to positions in the data with them.

    Args:
        seams: from `Scanner.joined`.
    """

    def __init__(self, seams: bytes) -> None:
        numbers = array.array("q", seams).tolist()
        self._places, self._lengths = numbers[::2], numbers[1::2]
        self._before = [0, *itertools.accumulate(self._lengths)]
        self._starts = [p + b for p, b in zip(self._places, self._before, strict=False)]

    def of(self, place: int) -> int:
        """The position of a byte, after any seams in front of it."""
        return place + self._before[bisect.bisect_right(self._places, place)]

    def span(self, span: Span) -> Span:
        """The position of some bytes, without the seams around them."""
        return self.of(span[0]), self.of(span[1] - 1) + 1

    def escapes(self, data: Data, start: int, stop: int) -> list[Data]:
        """The escape codes in a part of the data."""
        first, last = bisect.bisect(self._starts, start), bisect.bisect_left(self._starts, stop)
        seams = zip(self._starts[first:last], self._lengths[first:last], strict=True)
        return [data[at : at + length] for at, length in seams if data[at] == _ESC]


class MaskedStream:
    """Masks bytes that arrive in pieces: bytes that may start a secret wait for the next piece."""

    def __init__(self, holder: Holder) -> None:
        self._holder = holder
        # The waiting bytes are not masked yet, because a longer form may contain them all.
        self._tail = b""
        self._buffer = bytearray()
        self._released = 0
        self._before = 0

    @overload
    def feed(self, data: bytes) -> bytes: ...

    @overload
    def feed(self, data: Data) -> Data: ...

    def feed(self, data: Data) -> Data:
        """Take the next piece; return the bytes that can be written now.

        Of a view, the result is a view too, without a copy, until the next call.
        """
        return self._take(data, final=False)

    @property
    def has_release(self) -> bool:
        """Whether `release` would return bytes."""
        line = self._tail.removesuffix(b"\n").removesuffix(b"\r")
        return self._released < len(self._tail) and len(line) < MIN_BYTES

    def release(self) -> bytes:
        """Return the waiting bytes if they are too few to reveal a secret.

        For a pause in the output: the last line should be complete. If the secret continues later,
        the rest of it is still masked.
        """
        if not self.has_release:
            return b""
        released = self._tail[self._released :]
        self._released = len(self._tail)
        return released

    def close(self) -> bytes:
        """Return the waiting bytes, masked."""
        return bytes(self._take(b"", final=True))

    def _take(self, data: Data, *, final: bool) -> Data:
        if self._tail:
            data = self._after_tail(data)
        scanner = self._holder.scanner
        if scanner is None:
            return data
        out, size = mask(scanner, data, final=final, before=self._before)
        self._before = run_before(data, size, self._before)
        self._tail = bytes(data[size:])
        # no copy if there is nothing to mask
        masked = data[:size] if out is None else out
        if not self._released:
            return masked
        masked, released = bytes(masked), bytes(data[: min(self._released, size)])
        self._released -= len(released)
        if masked.startswith(released):
            return masked[len(released) :]
        # A form has started in the released bytes. What precedes it is the same in both; an
        # asterisk may be one of the mask.
        same = itertools.takewhile(
            lambda pair: pair[0] == pair[1] != _ASTERISK, zip(masked, released, strict=False)
        )
        return masked[sum(1 for _ in same) :]

    def _after_tail(self, data: Data) -> Data:
        """The waiting bytes and the next piece.

        A new object for each large piece would cost more than the search: the kernel clears its
        memory.
        """
        if not isinstance(data, memoryview) or len(data) < _LARGE:
            return self._tail + data
        size = len(self._tail) + len(data)
        if size > len(self._buffer):
            self._buffer = bytearray(size)
        whole = memoryview(self._buffer)[:size]
        whole[: len(self._tail)] = self._tail
        whole[len(self._tail) :] = data
        return whole
