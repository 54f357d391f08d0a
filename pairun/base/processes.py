"""Process trees as ``/proc`` tells them, and the inheritance of orphans."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import NamedTuple

from pairun.base import system


class Process(NamedTuple):
    """A line of ``/proc/<pid>/stat`` (proc(5)), as far as we need it."""

    pid: int
    parent: int
    group: int
    session: int
    dead: bool
    stopped: bool


def adopt_orphans() -> bool:
    """Become the process to which orphans below us fall (prctl(2), PR_SET_CHILD_SUBREAPER).

    PID 1 is that anyway. Where the kernel refuses, orphans fall to somebody else, and we go on.

    Returns:
        Whether orphans come to us.
    """
    if os.getpid() == 1:
        return True
    try:
        system.adopt_orphans()
    except OSError:
        return False
    return True


def processes() -> Iterator[Process]:
    """Every process that ``/proc`` shows; none when it belongs to another PID namespace."""
    # The number that /proc has for us differs from ours when it is another namespace's.
    if _own_number() != os.getpid():
        return
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                yield _read(int(name))


def session_groups(session: int) -> set[int]:
    """The process groups of a session that still have a living process."""
    found = {p.group for p in processes() if p.session == session and not p.dead}
    return found or ({session} if group_lives(session) else set())


def group_stopped(group: int) -> bool:
    """Whether a process group has a stopped member; its leader is our child.

    A stopped process does not act on what it is sent until it is continued.
    """
    with contextlib.suppress(ChildProcessError):
        # Works also where /proc does not show it; the report stays where it is.
        how = os.WSTOPPED | os.WNOHANG | os.WNOWAIT
        if os.waitid(os.P_PID, group, how) is not None:
            return True
    return any(p.stopped for p in processes() if p.group == group)


def group_lives(group: int) -> bool:
    """Whether a process group has a member (one that nobody has waited for counts)."""
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
    found: set[int] = set()
    for pid in table:
        chain, at = [], pid
        while at in table and at != root and at not in found:
            chain.append(at)
            at = table[at].parent
        if at == root or at in found:
            found.update(chain)
    return {pid for pid in found if not table[pid].dead}


def _own_number() -> int:
    try:
        return int(os.readlink("/proc/self"))
    except (OSError, ValueError):
        return 0


def _read(pid: int) -> Process:
    with open(f"/proc/{pid}/stat", "rb") as f:
        text = f.read()
    # The name stands in parentheses and may hold anything, parentheses too.
    state, parent, group, session = text[text.rindex(b")") + 2 :].split()[:4]
    return Process(pid, int(parent), int(group), int(session), state in (b"Z", b"X"), state == b"T")
