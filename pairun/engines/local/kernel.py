"""Namespaces and mounts: unshare(2), mount(2)."""

from __future__ import annotations

import ctypes
import os

from pairun.base.system import MS_BIND, mount

MS_REC = 0x4000
MS_PRIVATE = 0x40000
CLONE_NEWNS = 0x20000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000

_libc = ctypes.CDLL(None, use_errno=True)


def separate(*, user: bool) -> None:
    """Move this process to a new mount namespace, and its next child to a new PID namespace.

    Args:
        user: also make a user namespace, in which this user is root.

    Raises:
        OSError: the kernel refuses.
    """
    uid, gid = os.geteuid(), os.getegid()
    flags = CLONE_NEWNS | CLONE_NEWPID | (CLONE_NEWUSER if user else 0)
    if _libc.unshare(flags) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), "unshare")
    if user:
        # user_namespaces(7): otherwise only root may map groups
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"0 {uid} 1")
        _write("/proc/self/gid_map", f"0 {gid} 1")
    # mounts made here must not be visible outside
    mount("none", "/", None, MS_REC | MS_PRIVATE, None)


def bind(source: str, target: str) -> None:
    """Show a path, with the mounts below it, at another path.

    Raises:
        OSError: the kernel refuses.
    """
    mount(source, target, None, MS_BIND | MS_REC, None)


def mount_new(kind: str, target: str) -> None:
    """Mount a new file system without a device: ``tmpfs``, ``proc``.

    Raises:
        OSError: the kernel refuses.
    """
    mount(kind, target, kind, 0, None)


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as f:
        f.write(text)
