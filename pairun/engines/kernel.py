"""The system calls that Python's ``os`` lacks: mount(2), unshare(2), prctl(2)."""

from __future__ import annotations

import ctypes
import os

MS_BIND = 0x1000
MS_REC = 0x4000
MS_PRIVATE = 0x40000
CLONE_NEWNS = 0x20000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
PR_SET_PDEATHSIG = 1

_libc = ctypes.CDLL(None, use_errno=True)


def separate(*, user: bool) -> None:
    """Give this process a mount namespace of its own, and its next child a PID namespace.

    Args:
        user: also make a user namespace, in which this user is root.

    Raises:
        OSError: the kernel refuses.
    """
    uid, gid = os.geteuid(), os.getegid()
    flags = CLONE_NEWNS | CLONE_NEWPID | (CLONE_NEWUSER if user else 0)
    if _libc.unshare(flags) != 0:
        raise _error("unshare")
    if user:
        # user_namespaces(7): without this, nobody but root may map groups
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"0 {uid} 1")
        _write("/proc/self/gid_map", f"0 {gid} 1")
    # nothing that is mounted here is to be seen outside
    _mount("none", "/", None, MS_REC | MS_PRIVATE)


def bind(source: str, target: str) -> None:
    """Show a path, with what is mounted below it, at another path.

    Raises:
        OSError: the kernel refuses.
    """
    _mount(source, target, None, MS_BIND | MS_REC)


def mount_new(kind: str, target: str) -> None:
    """Mount a new file system without a device: ``tmpfs``, ``proc``.

    Raises:
        OSError: the kernel refuses.
    """
    _mount(kind, target, kind, 0)


def end_with_parent(number: int) -> None:
    """Let the kernel send us a signal when the process that started us ends.

    Raises:
        OSError: the kernel refuses.
    """
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
        raise _error(f"mount {target}")


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as f:
        f.write(text)


def _error(what: str) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number), what)
