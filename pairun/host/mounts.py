"""Mounts of this machine: the mount table, and system calls that a dead file server cannot hold.

Whatever may wait for a file server happens in a child process, which is killed when its time is
up; a mount that comes into being all the same is taken away again.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import select
import signal
import socket
import tempfile
import time
from collections.abc import Callable
from typing import Any

import attrs

from pairun.base import system
from pairun.base.signals import fork_program
from pairun.module import Mount, Permanent, Secret, TimedOut, Transient, format_duration, reveal

# <linux/mount.h>
MS_RDONLY = 0x1
MS_NOSUID = 0x2
MS_NODEV = 0x4
MS_REMOUNT = 0x20
MS_REC = 0x4000
# <sys/mount.h>
MNT_DETACH = 0x2

_TABLE = "/proc/self/mountinfo"
_DEAD_WAIT_S = 1.0
"""How long we wait for a child that was killed; the kernel may hold it (a dead file server)."""

_SUBDIR_MODE = 0o777
"""Of sub-directories that are made: jobs of one user run as different users of their images."""

_DATA_BYTES = 4095
"""What mount(2) takes as a file system's options: a page, with a NUL at its end."""


def mounts() -> list[Mount]:
    """Everything that is mounted, in order of mounting (proc(5), ``/proc/self/mountinfo``)."""
    with open(_TABLE, "rb") as table:
        return [parse_mount(os.fsdecode(line)) for line in table]


def parse_mount(line: str) -> Mount:
    """One line of the table: optional fields end with a hyphen, after it come type and source."""
    left, _, right = line.rstrip("\n").partition(" - ")
    fields = [_plain(f) for f in left.split(" ")]
    kind, source, *options = [_plain(f) for f in right.split(" ")]
    shown = (fields[5], *options)
    return Mount(
        target=fields[4],
        source=source,
        root=fields[3],
        kind=kind,
        read_only=any("ro" in text.split(",") for text in shown),
    )


def _plain(field: str) -> str:
    """A field without the octal escapes for space, tab, newline and backslash."""
    octal = re.sub(rb"\\([0-7]{3})", lambda m: bytes([int(m[1], 8) & 0xFF]), os.fsencode(field))
    return os.fsdecode(octal)


def real_path(path: str, limit_s: float) -> str:
    """A path without symbolic links, as the mount table has it.

    Raises:
        TimedOut: the file system did not answer.
    """
    return str(_in_child(lambda: os.path.realpath(path), f"looking at {path}", limit_s))


def free_bytes(path: str, limit_s: float) -> int:
    """The bytes that are free to users in the file system at a path (statfs(2)).

    Raises:
        OSError: the file system refuses.
        TimedOut: it did not answer.
    """

    def ask() -> int:
        found = os.statvfs(path)
        return found.f_bavail * found.f_frsize

    return int(_in_child(ask, f"the file system at {path}", limit_s))


def lookup(host: str, limit_s: float) -> str:
    """The first address of a host, IPv4 before IPv6.

    Raises:
        Permanent: there is no such name.
        Transient: nobody can say now.
        TimedOut: no answer in time.
    """

    def ask() -> list[str]:
        try:
            found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        except socket.gaierror as e:
            return [str(e.errno), e.strerror or "the name service failed"]
        found.sort(key=lambda f: f[0] != socket.AF_INET)
        return [str(found[0][4][0])]

    answer = _in_child(ask, f"looking up {host}", limit_s)
    if len(answer) == 1:
        return str(answer[0])
    if int(answer[0]) in (socket.EAI_AGAIN, socket.EAI_SYSTEM, socket.EAI_MEMORY):
        raise Transient(f"{host} cannot be looked up now: {answer[1]}")
    hint = "check its spelling; a name without dots is looked up in the Pod's search domains"
    raise Permanent(f"there is no host {host}: {answer[1]}", fault="user", hint=hint)


@attrs.frozen(kw_only=True)
class Wanted:
    """A mount that shall come into being.

    Attributes:
        source: what is mounted, as the table shows it.
        target: a directory.
        kind: the file system's name; None makes a directory appear a second time (a bind mount).
        data: options of the file system, for the kernel's eyes alone.
        subdir: the directory in it that is mounted, made where it is missing; "" for all of it.
        read_only: whether nothing may be written.
    """

    source: str
    target: str
    kind: str | None
    data: str | Secret | None
    subdir: str
    read_only: bool


def mount(wanted: Wanted, staging_in: str, limit_s: float) -> None:
    """Mount, wholly or not at all.

    Args:
        wanted: what.
        staging_in: where a directory may be made for a moment.
        limit_s: seconds for everything.

    Raises:
        OSError: the kernel or the server refuses; its ``filename`` is the sub-directory where that
            was the matter.
        Permanent: the options are too long.
        TimedOut: no answer in time.
    """
    if wanted.data is not None and len(os.fsencode(reveal(wanted.data))) > _DATA_BYTES:
        raise Permanent(f"the options for {wanted.target} are longer than the kernel takes")
    before = _count(wanted.target)
    staging = tempfile.mkdtemp(prefix=".mount-", dir=staging_in) if wanted.subdir else None
    try:
        _in_child(lambda: _mount(wanted, staging), f"{wanted.source} at {wanted.target}", limit_s)
    except BaseException:
        for _ in range(_count(wanted.target) - before):
            with contextlib.suppress(OSError):
                system.unmount(wanted.target, MNT_DETACH | system.UMOUNT_NOFOLLOW)
        raise
    finally:
        if staging is not None:
            _drop(staging)


def _count(target: str) -> int:
    return sum(m.target == target for m in mounts())


def _mount(wanted: Wanted, staging: str | None) -> None:
    """The child's part; the parent takes away what is left of it."""
    os.umask(0)
    inner = wanted.source
    if wanted.kind is not None:
        flags = MS_NOSUID | MS_NODEV | (MS_RDONLY if wanted.read_only else 0)
        at = staging or wanted.target
        data = None if wanted.data is None else reveal(wanted.data)
        system.mount(wanted.source, at, wanted.kind, flags, data)
        # What is mounted need not answer: a first question tells.
        os.statvfs(at)
        inner = at
    if wanted.subdir:
        inner = _made(inner, wanted.subdir)
    if wanted.kind is None or staging is not None:
        system.mount(inner, wanted.target, None, system.MS_BIND | MS_REC, None)
        if wanted.read_only:
            flags = MS_REMOUNT | system.MS_BIND | MS_RDONLY
            if wanted.kind is not None:
                flags |= MS_NOSUID | MS_NODEV
            system.mount(None, wanted.target, None, flags, None)


def _made(root: str, subdir: str) -> str:
    """A directory below another, made where it is missing; no link in it is followed."""
    at = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    path = root
    for name in subdir.split("/"):
        path = os.path.join(path, name)
        try:
            try:
                # O_NOFOLLOW: a storage that many may write must not lead elsewhere.
                inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=at)
            except FileNotFoundError:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, _SUBDIR_MODE, dir_fd=at)
                inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=at)
        except OSError as e:
            raise OSError(e.errno, e.strerror, subdir) from e
        os.close(at)
        at = inner
    os.close(at)
    return path


def _drop(staging: str) -> None:
    with contextlib.suppress(OSError):
        system.unmount(staging, MNT_DETACH | system.UMOUNT_NOFOLLOW)
    with contextlib.suppress(OSError):
        os.rmdir(staging)


def unmount(target: str, limit_s: float) -> None:
    """Unmount, or, where files are still open, out of sight now and away when they are closed.

    Raises:
        OSError: the kernel refuses.
    """
    before = _count(target)
    for flags in (0, MNT_DETACH):
        try:
            # In a child with either flag: what is still to be written goes to the server.
            _in_child(
                lambda: system.unmount(target, flags | system.UMOUNT_NOFOLLOW),  # noqa: B023
                f"unmounting {target}",
                limit_s,
            )
        except OSError as e:
            if e.errno == errno.EBUSY and not flags:
                continue
            raise
        except TimedOut:
            # umount(2) takes it out of the table before it waits for the server.
            if _count(target) == before:
                continue
        return


# --- the child -----------------------------------------------------------------------------------


def _in_child(act: Callable[[], Any], what: str, limit_s: float) -> Any:
    """Do something in a child process; returns what it returns, as plain data.

    Raises:
        OSError: as the child raised it.
        TimedOut: it was killed after ``limit_s`` seconds.
    """
    end = time.monotonic() + limit_s
    read, write = os.pipe()
    pid = fork_program()
    if pid == 0:
        _child(act, write)
    os.close(write)
    try:
        answer = _read(read, end)
        if answer is None:
            os.kill(pid, signal.SIGKILL)
    finally:
        os.close(read)
        _reap(pid)
    if answer is None:
        raise TimedOut(f"{what}: no answer within {format_duration(limit_s)}")
    if not answer:
        raise Transient(f"{what}: the process that asked was killed")
    found = json.loads(answer)
    if "errno" in found:
        raise OSError(found["errno"], os.strerror(found["errno"]), found["filename"])
    return found["value"]


def _child(act: Callable[[], Any], write: int) -> None:
    """The child's whole life; never returns."""
    code = 1
    try:
        try:
            report = {"value": act()}
        except OSError as e:
            report = {"errno": e.errno or errno.EIO, "filename": e.filename}
        os.write(write, json.dumps(report).encode())
        code = 0
    finally:
        os._exit(code)


def _read(fd: int, end: float) -> bytes | None:
    """All that comes from the child, or None when the time is up before its end."""
    found = b""
    while True:
        left = end - time.monotonic()
        if left <= 0 or not select.select([fd], [], [], left)[0]:
            return None
        piece = os.read(fd, 65536)
        if not piece:
            return found
        found += piece


def _reap(pid: int) -> None:
    """Wait for the child, but not for ever: what the kernel holds becomes the parent's orphan."""
    end = time.monotonic() + _DEAD_WAIT_S
    while os.waitpid(pid, os.WNOHANG)[0] == 0 and time.monotonic() < end:
        time.sleep(0.002)
