"""The container's standard output and standard error."""

from __future__ import annotations

import errno
import os
import select
from collections.abc import Callable

from pairun.volume.logfile import Data

_WRITE_BYTES = 64 * 1024
_NO_READER = frozenset({errno.EPIPE, errno.EBADF, errno.EIO, errno.ENXIO, errno.ECONNRESET})


class ContainerStream:
    """One of the container's streams; its reader may be slow or gone.

    Args:
        fd: 1 or 2.
        complain: called once, with a line for people, if the stream cannot be written.

    Attributes:
        lost: number of bytes that could not be written.
        taken: number of bytes written.
        left: bytes of the current write that the reader has not taken yet.
        gone: whether it has no reader any more.
    """

    def __init__(self, fd: int, complain: Callable[[str], None]) -> None:
        self.lost = self.taken = self.left = 0
        self.gone = False
        self._fd = fd
        self._complain = complain
        self._complained = False

    @property
    def name(self) -> str:
        """The stream's name for people."""
        return "standard output" if self._fd == 1 else "standard error"

    def write(self, data: Data) -> None:
        """Write all data; waits for the reader without a limit."""
        left = memoryview(data)
        while left and not self.gone:
            self.left = len(left)
            try:
                # in pieces, so that `taken` shows whether the reader makes progress
                written = os.write(self._fd, left[:_WRITE_BYTES])
            except BlockingIOError:
                # another process made the shared stream non-blocking
                select.select([], [self._fd], [])
                continue
            except OSError as e:
                self._failed(e)
                break
            self.taken += written
            left = left[written:]
        self.left = 0
        self.lost += len(left)

    def _failed(self, error: OSError) -> None:
        self.gone = error.errno in _NO_READER
        if not self._complained:
            self._complained = True
            self._complain(f"{self.name} cannot be written: {error.strerror}")
