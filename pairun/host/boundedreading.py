"""Bounded reads: without them an archive decides how much Python reads into memory."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import IO, Protocol

PIECE = 256 * 1024
"""How many bytes are read at once."""

MAX_HEADER = 1024 * 1024
"""The largest header of one member (names, attributes); Python reads it into memory."""


class Readable(Protocol):
    """A source of `Bounded`."""

    def read(self, size: int, /) -> bytes:
        """Read at most so many bytes; returns none at the end."""
        ...


def pieces(content: IO[bytes]) -> Callable[[], bytes]:
    """Make a function that returns the next piece of a file, and empty bytes at its end."""
    return functools.partial(content.read, PIECE)


class Bounded:
    """Reads from a file until ``may`` bytes are used up; the caller resets it for each member."""

    def __init__(self, file: Readable, may: int) -> None:
        self.may = may
        self._file = file

    def read(self, size: int = -1, /) -> bytes:
        """Read the next bytes."""
        data = self._file.read(min(size, self.may + 1) if size >= 0 else self.may + 1)
        self.may -= len(data)
        if self.may < 0:
            raise ValueError("the description of its members is too large")
        return data


class BoundedFile(Bounded):
    """`Bounded` for a file with positions."""

    def __init__(self, file: IO[bytes], may: int) -> None:
        super().__init__(file, may)
        self.seek, self.tell, self.seekable = file.seek, file.tell, file.seekable
