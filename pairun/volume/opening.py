"""Opens one name at a time for the door: never through a link, and never blocking."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator, Sequence
from typing import NoReturn

FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
"""Opens a directory to walk through, which needs no permission to list it."""

LISTED = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
SAFE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
MAX_LINKS = 40
"""The most links in one path, as in the kernel (path_resolution(7))."""


def open_regular(path: str, flags: int, mode: int = 0o644, *, folder: int | None = None) -> int:
    """Open a regular file: never through a link, and never blocking.

    Args:
        path: the file; relative to the open directory ``folder`` if that is given.
        flags: those of open(2); the safety flags are always added.
        mode: of a file that is created.
        folder: the open directory.

    Raises:
        OSError: it cannot be opened, or is not a regular file.
    """
    with contextlib.suppress(FileNotFoundError):
        # Opening a device may have effects, so check the type first.
        _require_regular(os.stat(path, dir_fd=folder, follow_symlinks=False), path)
    fd = os.open(path, flags | SAFE, mode, dir_fd=folder)
    try:
        _require_regular(os.fstat(fd), path)
    except BaseException:
        os.close(fd)
        raise
    return fd


def _require_regular(found: os.stat_result, path: str) -> None:
    if stat.S_ISLNK(found.st_mode):
        raise OSError(errno.ELOOP, "it is a symbolic link, which is not followed", path)
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "it is not a regular file", path)


def open_folder(parent: int | None, name: str, path: str, flags: int = FOLDER) -> int:
    """Open a directory that is not a link.

    Args:
        parent: the open directory that holds it; None if ``name`` is a path.
        name: its name.
        path: the path that errors name.
        flags: those of open(2).

    Raises:
        OSError: it does not exist, or is not a directory.
    """
    try:
        return os.open(name, flags, dir_fd=parent)
    except OSError as e:
        if e.errno in (errno.ENOTDIR, errno.ELOOP):
            found = os.stat(name, dir_fd=parent, follow_symlinks=False)
            if stat.S_ISLNK(found.st_mode):
                raise OSError(
                    errno.ELOOP, f"'{name}' is a symbolic link, which is not followed", path
                ) from e
        raise type(e)(e.errno, e.strerror, path) from e


@contextlib.contextmanager
def named(path: str) -> Iterator[None]:
    """Make errors name the whole path, not only its last name."""
    try:
        yield
    except OSError as e:
        if e.filename is not None:
            e.filename, e.filename2 = path, None
        raise


def mount_depth(root: str, parts: Sequence[str], mounts: frozenset[str]) -> int:
    """How many of the names lead to the innermost mount point on the path; 0 if there is none."""
    depths = range(len(parts), 0, -1)
    return next((n for n in depths if os.path.join(root, *parts[:n]) in mounts), 0)


def follow(
    top: int, root: str, parts: Sequence[str], mounts: frozenset[str], stack: contextlib.ExitStack
) -> tuple[int, str]:
    """Walk to a path; links must stay below their mount point.

    Args:
        top: the open root; closed by ``stack``, like every directory on the path.
        root: its path without links.
        parts: the names below it.
        mounts: every mount point.
        stack: closes the directories that are opened.

    Returns:
        The open directory that holds the last name, and that name, which is not a link.
    """
    fds, links = [top], 0
    names: list[str] = []
    stack.callback(os.close, top)
    left = list(parts)
    while left:
        name = left.pop(0)
        if name in ("", "."):
            continue
        if name == "..":
            if len(names) <= mount_depth(root, names, mounts):
                _leaves_mount(name)
            names.pop()
            fds.pop()
            continue
        found = os.stat(name, dir_fd=fds[-1], follow_symlinks=False)
        if stat.S_ISLNK(found.st_mode):
            links += 1
            target = os.readlink(name, dir_fd=fds[-1])
            if mount_depth(root, names, mounts) == 0 or target.startswith("/"):
                _leaves_mount(name)
            if links > MAX_LINKS:
                raise OSError(errno.ELOOP, "there are too many symbolic links", name)
            left = [*target.split("/"), *left]
        elif left:
            fd = open_folder(fds[-1], name, name)
            stack.callback(os.close, fd)
            fds.append(fd)
            names.append(name)
        else:
            return fds[-1], name
    # The path ends at a directory that links lead to: `..`, or the mount point itself.
    return fds[-1], "."


def _leaves_mount(name: str) -> NoReturn:
    raise OSError(errno.ELOOP, f"'{name}' leads out of the mount, and is not followed", name)
