"""Mounts of this machine: the mount table, and system calls that a dead file server cannot hold.

What may wait for a file server runs in a child process that is killed when its time is up. If a
mount appears all the same, it is unmounted.
"""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile

import attrs

from pairun.base import system
from pairun.base.mounts import TABLE, unescaped
from pairun.host.boundedcall import in_child
from pairun.module import Mount, Permanent, Secret, TimedOut, reveal

# <linux/mount.h>
MS_RDONLY = 0x1
MS_NOSUID = 0x2
MS_NODEV = 0x4
MS_REMOUNT = 0x20
MS_REC = 0x4000
# <sys/mount.h>
MNT_DETACH = 0x2

_SUBDIR_MODE = 0o777
"""Of sub-directories that are made: jobs of one user run as different users of their images."""

_DATA_BYTES = 4095
"""What mount(2) takes as a file system's options: a page, with a NUL at its end."""


def mounts() -> list[Mount]:
    """Everything that is mounted, in order of mounting (proc(5), ``/proc/self/mountinfo``)."""
    with open(TABLE, "rb") as table:
        return [parse_mount(line) for line in table]


def parse_mount(line: bytes) -> Mount:
    """One line of the table: optional fields end with a hyphen, after it come type and source."""
    left, _, right = line.rstrip(b"\n").partition(b" - ")
    fields = [os.fsdecode(unescaped(field)) for field in left.split(b" ")]
    kind, source, *options = [os.fsdecode(unescaped(field)) for field in right.split(b" ")]
    shown = (fields[5], *options)
    return Mount(
        target=fields[4],
        source=source,
        root=fields[3],
        kind=kind,
        read_only=any("ro" in text.split(",") for text in shown),
    )


def real_path(path: str, limit_s: float) -> str:
    """A path without symbolic links, as the mount table has it.

    Raises:
        TimedOut: the file system did not answer.
    """
    return str(in_child(lambda: os.path.realpath(path), f"looking at {path}", limit_s))


def free_bytes(path: str, limit_s: float) -> int:
    """The bytes that are free to users in the file system at a path (statfs(2)).

    Raises:
        OSError: the file system refuses.
        TimedOut: it did not answer.
    """

    def ask() -> int:
        usage = os.statvfs(path)
        return usage.f_bavail * usage.f_frsize

    return int(in_child(ask, f"the file system at {path}", limit_s))


@attrs.frozen(kw_only=True)
class MountRequest:
    """A mount to make.

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


def mount(request: MountRequest, staging_in: str, limit_s: float) -> None:
    """Mount completely or not at all.

    Args:
        request: what to mount.
        staging_in: where a temporary directory may be made.
        limit_s: limit of the whole in seconds.

    Raises:
        OSError: the kernel or the server refuses; its ``filename`` is the sub-directory where that
            was the matter.
        Permanent: the options are too long.
        TimedOut: no answer in time.
    """
    if request.data is not None and len(os.fsencode(reveal(request.data))) > _DATA_BYTES:
        raise Permanent(f"the options for {request.target} are longer than the kernel takes")
    before = _count(request.target)
    staging = tempfile.mkdtemp(prefix=".mount-", dir=staging_in) if request.subdir else None
    try:
        in_child(lambda: _mount(request, staging), f"{request.source} at {request.target}", limit_s)
    except BaseException:
        for _ in range(_count(request.target) - before):
            with contextlib.suppress(OSError):
                system.unmount(request.target, MNT_DETACH | system.UMOUNT_NOFOLLOW)
        raise
    finally:
        if staging is not None:
            _drop(staging)


def _count(target: str) -> int:
    return sum(m.target == target for m in mounts())


def _mount(request: MountRequest, staging: str | None) -> None:
    """Mount; runs in the child. The parent unmounts what a failure leaves."""
    os.umask(0)
    inner = request.source
    if request.kind is not None:
        flags = MS_NOSUID | MS_NODEV | (MS_RDONLY if request.read_only else 0)
        at = staging or request.target
        data = None if request.data is None else reveal(request.data)
        system.mount(request.source, at, request.kind, flags, data)
        # A mounted server may not answer: statfs(2) tests it.
        os.statvfs(at)
        inner = at
    if request.subdir:
        inner = _made(inner, request.subdir)
    if request.kind is None or staging is not None:
        system.mount(inner, request.target, None, system.MS_BIND | MS_REC, None)
        if request.read_only:
            flags = MS_REMOUNT | system.MS_BIND | MS_RDONLY
            if request.kind is not None:
                flags |= MS_NOSUID | MS_NODEV
            system.mount(None, request.target, None, flags, None)


def _made(root: str, subdir: str) -> str:
    """A directory below another, made if it is missing; no link is followed."""
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
    """Unmount; a file system in use is detached, and unmounted when its files are closed.

    Raises:
        OSError: the kernel refuses.
    """
    before = _count(target)
    for flags in (0, MNT_DETACH):
        try:
            # In a child with either flag: what is still to be written goes to the server.
            in_child(
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
