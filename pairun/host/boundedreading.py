"""Reading no more than allowed: an archive decides how much of it is read into memory."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import IO, Protocol

PIECE = 256 * 1024
"""Bytes that are read at once."""

MAX_HEADER = 1024 * 1024
"""The most that may describe one member: names, attributes. Python reads it into memory."""


class Readable(Protocol):
    """What `Bounded` reads from."""

    def read(self, size: int, /) -> bytes:
        """The next bytes, at most so many; none at the end."""
        ...


def pieces(content: IO[bytes]) -> Callable[[], bytes]:
    """A function that returns the next piece of a file, and nothing at its end."""
    return functools.partial(content.read, PIECE)


class Bounded:
    """Reads from a file until ``may`` bytes are used up; who reads sets it anew for each member."""

    def __init__(self, file: Readable, may: int) -> None:
        self.may = may
        self._file = file

    def read(self, size: int = -1, /) -> bytes:
        """The next bytes."""
        data = self._file.read(min(size, self.may + 1) if size >= 0 else self.may + 1)
        self.may -= len(data)
        if self.may < 0:
            raise ValueError("the description of its members is too large")
        return data


class BoundedFile(Bounded):
    """The same for a file with positions."""

    def __init__(self, file: IO[bytes], may: int) -> None:
        super().__init__(file, may)
        self.seek, self.tell, self.seekable = file.seek, file.tell, file.seekable
