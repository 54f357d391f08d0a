"""File descriptors of the rendezvous: their limit, and how to close one."""

from __future__ import annotations

import contextlib
import os

_MAX_FILES = 20_000
_SPARE_FILES = 64


def max_peers() -> int:
    """The maximum number of this process's connections; raises its limit of open files for them."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = _MAX_FILES if hard == resource.RLIM_INFINITY else min(hard, _MAX_FILES)
    if soft != resource.RLIM_INFINITY and soft < limit:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
            soft = limit
    return max(_SPARE_FILES, min(limit, soft) - _SPARE_FILES)


def close_quietly(fd: int) -> None:
    """Close a descriptor that may be closed already."""
    with contextlib.suppress(OSError):
        os.close(fd)
