"""File descriptors that must stay free: a process without free ones cannot start a child."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

SPARE = 5
"""The descriptors that PID 1 needs at once besides its logs: two memory files and a pipe to start a
child, or three directories and files for a journal record or a termination message."""


@contextlib.contextmanager
def sparing(count: int = SPARE) -> Iterator[None]:
    """Open descriptors that stay open, but only if enough others remain free.

    Args:
        count: number of descriptors that must remain free.

    Raises:
        OSError: the process's limit is too low for both (EMFILE, getrlimit(2)).
    """
    with contextlib.ExitStack() as spare:
        for _ in range(count):
            spare.callback(os.close, os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
        yield
