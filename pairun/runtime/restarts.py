"""Counts this container's restarts in its Pod; init containers do not run again for these."""

from __future__ import annotations

import contextlib
import os

from pairun.base.paths import STARTS_FILE
from pairun.volume.door import Door

VARIABLE = "PAIRUN_RESTARTS"
"""The variable for tasks and the command; not set at the first start."""

_MAX_BYTES = 64


def count_restart(door: Door) -> int:
    """Count this start of PID 1; returns the number of restarts since init ran, 0 at the first start.

    Init empties the volume, so the count starts at 0 if a Pod's init containers run again.

    Args:
        door: to the shared volume.
    """
    path = os.path.join(door.root, STARTS_FILE)
    try:
        text = door.read(path, _MAX_BYTES)
    except FileNotFoundError:
        before = 0
    except OSError:
        # The entry exists, so an earlier start made it.
        before = 1
    else:
        before = int(text) if text.isdigit() and len(text) < 10 else 1
    # If the file cannot be written, each start counts as the first one.
    with contextlib.suppress(OSError):
        door.write(path, b"%d" % (before + 1))
    return before
