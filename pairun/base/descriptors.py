"""File descriptors that must remain free: a process that has none left can start no child."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

SPARE = 5
"""What PID 1 needs at once beside its logs: two memory files and a pipe to start a child, or three
directories and files for a record of the journal or a termination message."""


@contextlib.contextmanager
def sparing(count: int = SPARE) -> Iterator[None]:
    """Open descriptors that stay open, only if others remain free.

    Args:
        count: how many must remain free.

    Raises:
        OSError: the limit of the process is too low for both (EMFILE, getrlimit(2)).
    """
    with contextlib.ExitStack() as spare:
        for _ in range(count):
            spare.callback(os.close, os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
        yield
