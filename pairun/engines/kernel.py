"""The two system calls that Python's ``os`` lacks: mount(2) and prctl(2)."""

from __future__ import annotations

import ctypes
import os

MS_REC = 0x4000
MS_BIND = 0x1000
PR_SET_PDEATHSIG = 1

_libc = ctypes.CDLL(None, use_errno=True)


def bind(source: str, target: str) -> None:
    """Show a path, with what is mounted below it, at another path.

    Raises:
        OSError: the kernel refuses.
    """
    _mount(source, target, None, MS_BIND | MS_REC)


def mount_tmpfs(target: str) -> None:
    """Mount an empty file system that lives in memory.

    Raises:
        OSError: the kernel refuses.
    """
    _mount("tmpfs", target, "tmpfs", 0)


def end_with_parent(number: int) -> None:
    """Let the kernel send us a signal when the process that started us ends."""
    if _libc.prctl(PR_SET_PDEATHSIG, number, 0, 0, 0) != 0:
        raise _error("prctl")


def _mount(source: str, target: str, kind: str | None, flags: int) -> None:
    done = _libc.mount(
        os.fsencode(source),
        os.fsencode(target),
        None if kind is None else kind.encode(),
        ctypes.c_ulong(flags),
        None,
    )
    if done != 0:
        raise _error(target)


def _error(what: str) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number), what)
