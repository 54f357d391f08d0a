"""Mount points in the kernel's table; for processes that import only the standard library."""

from __future__ import annotations

import os
import re

TABLE = "/proc/self/mountinfo"


def mount_points() -> frozenset[str]:
    """All mount points that this process sees (proc(5), ``/proc/self/mountinfo``, fifth field).

    Returns:
        Paths without symbolic links; none if the table cannot be read.
    """
    try:
        with open(TABLE, "rb") as table:
            fields = [line.split()[4] for line in table]
    except (OSError, IndexError):
        return frozenset()
    return frozenset(os.fsdecode(unescaped(field)) for field in fields)


def unescaped(field: bytes) -> bytes:
    """Decode the octal escapes of space, tab, newline and backslash in a field of the table."""
    return re.sub(rb"\\([0-7]{3})", lambda m: bytes([int(m[1], 8) & 0xFF]), field)
