"""Bounded reads, because an archive decides how much of it Python reads into memory."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import IO, Protocol

PIECE = 256 * 1024
"""How many bytes to read at once."""

MAX_HEADER = 1024 * 1024
"""The largest description of one member (names, attributes), which Python reads into memory."""


class Readable(Protocol):
    """What `Bounded` reads from."""

    def read(self, size: int, /) -> bytes:
        """Read at most so many bytes; none at the end."""
        ...


def pieces(content: IO[bytes]) -> Callable[[], bytes]:
    """Make a function that returns the next piece of a file, and nothing at its end."""
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
    """The same for a file with positions."""

    def __init__(self, file: IO[bytes], may: int) -> None:
        super().__init__(file, may)
        self.seek, self.tell, self.seekable = file.seek, file.tell, file.seekable
