"""What Python's ``os`` lacks: mount(2), umount2(2), prctl(2), and the kernel's table of mounts.

The bundle has them linked in (``_pairun``), because a static program cannot load libraries. Any
other Python calls them through ctypes.
"""

from __future__ import annotations

import os
import re
import sys

BUNDLED = "_pairun" in sys.builtin_module_names
"""Whether this is the one-file program, which starts child processes by its own path."""

MS_BIND = 0x1000
UMOUNT_NOFOLLOW = 0x8

MOUNT_TABLE = "/proc/self/mountinfo"

PR_SET_PDEATHSIG = 1
"""Sends us a signal when the thread that started us ends."""

PR_SET_CHILD_SUBREAPER = 36
"""Makes us the parent of orphaned descendants."""


def mount(source: str | None, target: str, kind: str | None, flags: int, data: str | None) -> None:
    """Mount a file system without a helper program (mount(2)).

    Args:
        source: a device, or another source that the file system accepts.
        target: the path to mount at.
        kind: the file system's name, for a new mount.
        flags: ``MS_…``.
        data: options of the file system; only the kernel sees a password in them.

    Raises:
        OSError: the kernel returns an error.
    """
    if BUNDLED:
        import _pairun  # type: ignore[import-not-found]

        _pairun.mount(source, target, kind, flags, data)
        return
    import ctypes

    texts = [None if t is None else os.fsencode(t) for t in (source, target, kind, data)]
    _call("mount", *texts[:3], ctypes.c_ulong(flags), texts[3], path=target)


def unmount(target: str, flags: int = UMOUNT_NOFOLLOW) -> None:
    """Unmount a path (umount2(2)).

    Args:
        target: the path.
        flags: ``UMOUNT_NOFOLLOW``.

    Raises:
        OSError: the kernel returns an error.
    """
    if BUNDLED:
        import _pairun

        _pairun.umount(target, flags)
        return
    _call("umount2", os.fsencode(target), flags, path=target)


def mount_points() -> frozenset[str]:
    """All mount points that this process sees (proc(5), ``/proc/self/mountinfo``, fifth field).

    Returns:
        Paths without symbolic links; none if the table cannot be read.
    """
    try:
        with open(MOUNT_TABLE, "rb") as table:
            fields = [line.split()[4] for line in table]
    except (OSError, IndexError):
        return frozenset()
    return frozenset(os.fsdecode(unescaped(field)) for field in fields)


def unescaped(field: bytes) -> bytes:
    """Decode the octal escapes of space, tab, newline and backslash in a field of the table."""
    return re.sub(rb"\\([0-7]{3})", lambda m: bytes([int(m[1], 8) & 0xFF]), field)


def prctl(option: int, value: int) -> None:
    """Change how the kernel treats this process (prctl(2)).

    Raises:
        OSError: the kernel returns an error.
    """
    if BUNDLED:
        import _pairun

        _pairun.prctl(option, value)
        return
    import ctypes

    _call("prctl", option, *(ctypes.c_ulong(n) for n in (value, 0, 0, 0)))


def _call(name: str, *args: object, path: str | None = None) -> None:
    import ctypes

    if getattr(ctypes.CDLL(None, use_errno=True), name)(*args) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), path)
