"""How many instances fit on this machine: memory, processes, open files."""

from __future__ import annotations

import contextlib
import os
import resource
from typing import NamedTuple

from pairun.base.sizes import format_size
from pairun.errors import PairunError, Problem

INSTANCE_BYTES = 64 * 1024 * 1024
"""Memory per instance without its commands: 45 MiB for init and PID 1, the rest for an attempt."""

INSTANCE_PROCESSES = 6
"""Processes per instance: supervisor, tasks, an attempt, and a shell with two programs."""

INSTANCE_FILES = 4
"""Files that ``pairun run`` holds open per instance: output, log, journal, one more for a fork."""

OWN_FILES = 32
"""Files that ``pairun run`` itself holds open."""


class Capacity(NamedTuple):
    """How many instances fit, and what limits them."""

    instances: int
    because: str


def check_capacity(instances: int, capacity: Capacity | None = None) -> None:
    """Refuse to run more instances than fit on this machine.

    Args:
        instances: how many instances to run.
        capacity: this machine's capacity; measured by default.

    Raises:
        PairunError: they do not fit (PR705).
    """
    fits = capacity or measure()
    if instances > fits.instances:
        raise PairunError(
            Problem(
                "PR705",
                f"{instances} instances do not fit on this machine: {fits.instances} do "
                f"({fits.because})",
                hint=f"run fewer with --instances {max(1, fits.instances)}, or run all "
                "of them with --overcommit",
            )
        )


def measure() -> Capacity:
    """Measure this machine's capacity now; the scarcest resource limits it."""
    memory, processes, files = _memory(), _processes(), _files()
    need = f"{format_size(memory)} of memory is free, an instance needs"
    limits = [
        Capacity(memory // INSTANCE_BYTES, f"{need} {format_size(INSTANCE_BYTES)}"),
        Capacity(
            (files - OWN_FILES) // INSTANCE_FILES,
            f"{files} files may be open, an instance needs {INSTANCE_FILES}",
        ),
    ]
    if processes is not None:
        because = f"{processes} more processes may start, an instance needs {INSTANCE_PROCESSES}"
        limits.append(Capacity(processes // INSTANCE_PROCESSES, because))
    instances, because = min(limits)
    return Capacity(max(0, instances), because)


def _memory() -> int:
    """Free bytes on this machine (proc(5)) and in this control group (cgroup v2)."""
    free = 1 << 62
    with contextlib.suppress(OSError, ValueError, IndexError), open("/proc/meminfo") as f:
        amounts = dict(line.split(":", 1) for line in f)
        free = int(amounts["MemAvailable"].split()[0]) * 1024
    left = _left_in_group("memory.max", "memory.current")
    return free if left is None else min(free, left)


def _processes() -> int | None:
    """How many more processes may start; None for no limit (getrlimit(2), cgroup v2)."""
    limits = []
    soft, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    # The limit of a user does not apply to root.
    if soft != resource.RLIM_INFINITY and os.getuid() != 0:
        limits.append(soft - _own_processes())
    if (left := _left_in_group("pids.max", "pids.current")) is not None:
        limits.append(left)
    return min(limits, default=None)


def _own_processes() -> int:
    own = 0
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError):
                own += os.stat(f"/proc/{name}").st_uid == os.getuid()
    return own


def _files() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 1 << 20 if soft == resource.RLIM_INFINITY else soft


def _left_in_group(limit: str, used: str) -> int | None:
    """How much of a limit this process's control group has left; None for no limit."""
    lefts = []
    for folder in _groups():
        with contextlib.suppress(OSError, ValueError):
            lefts.append(_number(folder, limit) - _number(folder, used))
    return max(0, min(lefts)) if lefts else None


def _groups() -> list[str]:
    """The folders of this process's control group and of its ancestors."""
    with contextlib.suppress(OSError), open("/proc/self/cgroup") as f:
        for line in f:
            number, _, path = line.rstrip("\n").split(":", 2)
            if number == "0":
                parts = [p for p in path.split("/") if p and p != ".."]
                return [
                    os.path.join("/sys/fs/cgroup", *parts[:n]) for n in range(len(parts), -1, -1)
                ]
    return []


def _number(folder: str, name: str) -> int:
    """Read a number of a control group; raises ValueError for ``max``."""
    with open(os.path.join(folder, name)) as f:
        return int(f.read())
