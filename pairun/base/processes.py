"""Process trees in ``/proc``, the adoption of orphans, and file descriptors that must stay free.

A process without free descriptors cannot start a child.
"""

from __future__ import annotations

import contextlib
import os
import resource
from collections.abc import Iterator
from typing import NamedTuple

from pairun.base import system


class Process(NamedTuple):
    """The fields of ``/proc/<pid>/stat`` (proc(5)) that pairun uses."""

    pid: int
    parent: int
    group: int
    session: int
    dead: bool
    stopped: bool


def adopt_orphans() -> None:
    """Become the parent of orphaned descendants; if the kernel refuses, another process is it."""
    if os.getpid() != 1:
        with contextlib.suppress(OSError):
            system.prctl(system.PR_SET_CHILD_SUBREAPER, 1)


def limit_cores(limit: tuple[int, int] | None = None) -> tuple[int, int]:
    """Set the largest core dump of this process and of those that it starts (RLIMIT_CORE).

    Args:
        limit: soft and hard, in bytes; None for no core dump: the memory of pairun has secrets.

    Returns:
        The limit before.
    """
    before = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, limit or (0, before[1]))
    return before


def processes() -> Iterator[Process]:
    """Every process in ``/proc``; none if it belongs to another PID namespace."""
    # In another namespace's /proc our PID differs.
    if _own_pid_in_proc() != os.getpid():
        return
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                yield _read(int(name))


def session_groups(session: int) -> set[int]:
    """The process groups of a session that contain a living process."""
    groups = {p.group for p in processes() if p.session == session and not p.dead}
    return groups or ({session} if group_lives(session) else set())


def group_stopped(group: int) -> bool:
    """Whether a process group has a stopped member; its leader is our child.

    A stopped process does not handle signals until it is continued.
    """
    # This works without /proc, too.
    return child_stopped(group) or any(p.stopped for p in processes() if p.group == group)


def child_stopped(pid: int) -> bool:
    """Whether a child of this process is stopped."""
    with contextlib.suppress(ChildProcessError):
        # WNOWAIT leaves the status for a later wait.
        how = os.WSTOPPED | os.WNOHANG | os.WNOWAIT
        return os.waitid(os.P_PID, pid, how) is not None
    return False


def group_lives(group: int) -> bool:
    """Whether a process group has a member; zombies count."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def descendants(root: int) -> set[int]:
    """Every living process whose chain of parents leads to ``root``."""
    table = {p.pid: p for p in processes()}
    below: set[int] = set()
    for pid in table:
        chain, at = [], pid
        while at in table and at != root and at not in below:
            chain.append(at)
            at = table[at].parent
        if at == root or at in below:
            below.update(chain)
    return {pid for pid in below if not table[pid].dead}


def _own_pid_in_proc() -> int:
    try:
        return int(os.readlink("/proc/self"))
    except (OSError, ValueError):
        return 0


def _read(pid: int) -> Process:
    with open(f"/proc/{pid}/stat", "rb") as f:
        text = f.read()
    # The name is in parentheses and may itself contain parentheses.
    state, parent, group, session = text[text.rindex(b")") + 2 :].split()[:4]
    return Process(pid, int(parent), int(group), int(session), state in (b"Z", b"X"), state == b"T")


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
