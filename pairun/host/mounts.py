"""Mounts of this machine: the mount table, and system calls with a time limit.

A system call that may wait for a file server runs in a child process, which is killed after the
time limit. If the mount still appears, it is unmounted.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator

import attrs

from pairun.base import system
from pairun.base.folder import Folder, open_folder
from pairun.module import Mount, Permanent, Secret, TimedOut, reveal
from pairun.net.boundedcall import in_child
from pairun.volume.door import Door

# <linux/mount.h>
MS_RDONLY = 0x1
MS_NOSUID = 0x2
MS_NODEV = 0x4
MS_REMOUNT = 0x20
_MS_REC = 0x4000
# <sys/mount.h>
MNT_DETACH = 0x2

_SUBDIR_MODE = 0o777
"""The mode of new sub-directories: jobs of one user run as different users of their images."""

_DATA_BYTES = 4095
"""The maximum length of mount(2)'s options: a page, including a NUL at the end."""


def mounts() -> list[Mount]:
    """All mounts, in order of mounting (proc(5), ``/proc/self/mountinfo``)."""
    with open(system.MOUNT_TABLE, "rb") as table:
        return [parse_mount(line) for line in table]


def parse_mount(line: bytes) -> Mount:
    """Parse one line of the table: type and source follow a hyphen after the optional fields."""
    left, _, right = line.rstrip(b"\n").partition(b" - ")
    fields = [os.fsdecode(system.unescaped(field)) for field in left.split(b" ")]
    kind, source, *options = [os.fsdecode(system.unescaped(field)) for field in right.split(b" ")]
    shown = (fields[5], *options)
    return Mount(
        target=fields[4],
        source=source,
        root=fields[3],
        kind=kind,
        read_only=any("ro" in text.split(",") for text in shown),
    )


def real_path(path: str, limit_s: float) -> str:
    """A path without symbolic links, as in the mount table.

    Raises:
        TimedOut: the file system did not answer.
    """
    return str(in_child(lambda: os.path.realpath(path), f"looking at {path}", limit_s))


def free_bytes(path: str, limit_s: float) -> int:
    """The bytes available to users in the file system at a path (statfs(2)).

    Raises:
        OSError: the file system returns an error.
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
        source: what to mount, as the mount table shows it.
        target: the directory to mount at.
        kind: the file system's name; None for a bind mount of a directory.
        data: options of the file system, passed to the kernel only.
        subdir: the subdirectory to mount, made if it is missing; "" for the whole file system.
        read_only: whether to mount read-only.
    """

    source: str
    target: str
    kind: str | None
    data: str | Secret | None
    subdir: str
    read_only: bool


def mount(request: MountRequest, door: Door, limit_s: float) -> None:
    """Mount completely or not at all.

    Args:
        door: to the shared volume, which holds a temporary directory.
        limit_s: time limit for all steps together, in seconds.

    Raises:
        OSError: the kernel or the server refuses; its ``filename`` is the subdirectory if that is
            the cause.
        Permanent: the options are too long.
        TimedOut: no answer within the limit.
    """
    if request.data is not None and len(os.fsencode(reveal(request.data))) > _DATA_BYTES:
        raise Permanent(f"the options for {request.target} are longer than the kernel accepts")
    before = _count(request.target)
    staging = None
    if request.kind is not None and request.subdir:
        staging = os.path.join(door.root, f".mount-{os.urandom(8).hex()}")
        door.make_folder(staging, 0o700)
    try:
        what = f"{request.source} at {request.target}"
        in_child(lambda: _mount(request, staging, door), what, limit_s)
    except BaseException:
        for _ in range(_count(request.target) - before):
            with contextlib.suppress(OSError):
                _unmount(request.target, door, MNT_DETACH)
        raise
    finally:
        if staging is not None:
            with contextlib.suppress(OSError):
                _unmount(staging, door, MNT_DETACH)
            with contextlib.suppress(OSError):
                door.remove(staging)


def _count(target: str) -> int:
    return sum(m.target == target for m in mounts())


def _mount(request: MountRequest, staging: str | None, door: Door) -> None:
    """Mount; runs in the child. The parent unmounts after a failure."""
    os.umask(0)
    source = request.source
    if request.kind is not None:
        flags = MS_NOSUID | MS_NODEV | (MS_RDONLY if request.read_only else 0)
        at = staging or request.target
        data = None if request.data is None else reveal(request.data)
        with _directory(at, door) as target:
            system.mount(source, target, request.kind, flags, data)
        # A mounted server may not respond: statfs(2) tests it.
        with _directory(at, door) as target:
            os.statvfs(target)
        source = at
    if request.kind is None or staging is not None:
        with (
            _directory(source, door) as root,
            _made(root, request.subdir) as inner,
            _directory(request.target, door) as target,
        ):
            system.mount(inner, target, None, system.MS_BIND | _MS_REC, None)
        if request.read_only:
            flags = MS_REMOUNT | system.MS_BIND | MS_RDONLY
            if request.kind is not None:
                flags |= MS_NOSUID | MS_NODEV
            with _directory(request.target, door) as target:
                system.mount(None, target, None, flags, None)


@contextlib.contextmanager
def _directory(path: str, door: Door) -> Iterator[str]:
    """A directory for mount(2): on the shared volume an open one, so that links have no effect.

    Opens the path for each call: a new mount covers directories opened earlier.
    """
    if path not in door:
        yield path
        return
    with _open_below(door, path) as opened:
        try:
            yield opened
        except OSError as e:
            if e.filename == opened:
                e.filename = path
            raise


@contextlib.contextmanager
def _made(root: str, subdir: str) -> Iterator[str]:
    """A directory below another one, for mount(2); made if missing, and no link is followed.

    Other users of the storage must not redirect the path.
    """
    if not subdir:
        yield root
        return
    with contextlib.ExitStack() as opened:
        fd = os.open(root, os.O_PATH | os.O_DIRECTORY)
        opened.callback(os.close, fd)
        below = Folder(root, fd)
        try:
            below.make_folder(subdir, _SUBDIR_MODE, parents_mode=_SUBDIR_MODE)
            inner = opened.enter_context(_open_below(below, subdir))
        except OSError as e:
            raise OSError(e.errno, e.strerror, subdir) from e
        yield inner


@contextlib.contextmanager
def _open_below(folder: Folder, path: str) -> Iterator[str]:
    """An open directory, for a system call that takes a path."""
    with folder.holding(path) as (above, name):
        fd = open_folder(above.fd, name, path)
    try:
        yield f"/proc/self/fd/{fd}"
    finally:
        os.close(fd)


def _unmount(target: str, door: Door, flags: int) -> None:
    """Unmount a path; does not follow a link there."""
    if target not in door:
        system.unmount(target, flags | system.UMOUNT_NOFOLLOW)
        return
    with door.holding(target) as (folder, name):
        system.unmount(f"/proc/self/fd/{folder.fd}/{name}", flags | system.UMOUNT_NOFOLLOW)


def unmount(target: str, door: Door, limit_s: float) -> None:
    """Unmount; a file system in use is detached, and unmounted once its files are closed.

    Raises:
        OSError: the kernel refuses.
    """
    before = _count(target)
    for flags in (0, MNT_DETACH):
        try:
            # In a child with either flag: unwritten data go to the server.
            in_child(
                lambda: _unmount(target, door, flags),  # noqa: B023
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
