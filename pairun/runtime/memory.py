"""Counts how often the kernel killed a process of this container for lack of memory.

The count belongs to the container's cgroup, so it includes children of the user's command (Linux,
admin-guide/cgroup-v2 ``memory.events``; cgroup-v1/memory ``memory.oom_control``).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

_ROOT = "/sys/fs/cgroup"


def oom_kills(root: str = _ROOT, own: str = "/proc/self/cgroup") -> int | None:
    """How many processes in the container's cgroup were killed for memory; None if unknown.

    Args:
        root: the mount point of cgroups.
        own: the file that lists our cgroups.
    """
    for path in _candidates(root, own):
        try:
            with open(path, encoding="ascii", errors="replace") as f:
                kills = re.search(r"^oom_kill (\d+)$", f.read(), re.MULTILINE)
        except OSError:
            continue
        if kills:
            return int(kills[1])
    return None


def _candidates(root: str, own: str) -> Iterator[str]:
    """Files that may contain the count: a container may see its cgroup as the root or below it."""
    paths = {"memory": "/", "": "/"}
    try:
        with open(own, encoding="utf-8", errors="replace") as f:
            for line in f:
                _, controllers, path = line.rstrip("\n").split(":", 2)
                for name in controllers.split(","):
                    if name in paths:
                        paths[name] = path
    except (OSError, ValueError):
        pass
    for path in dict.fromkeys((paths[""], "/")):
        yield os.path.join(root, path.lstrip("/"), "memory.events")
    for path in dict.fromkeys((paths["memory"], "/")):
        yield os.path.join(root, "memory", path.lstrip("/"), "memory.oom_control")
