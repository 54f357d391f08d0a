"""The door: the only access to paths on the shared volume and in the log directory.

A `Folder`, so it follows no link that the user's command may have planted. Paths that the platform
mounts are different. It mounts Secrets and ConfigMaps into the volume, as links to ``..data/``. The
door accepts such a path only below a mount point; it follows links there, and they must stay below
that mount point. A laptop has no such mounts: an engine that writes these files to a new volume
declares it with `PLAIN_FILES`, and they must then be regular files of the user who runs the phase.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator, Sequence
from io import BufferedReader
from typing import NoReturn

from pairun.base.folder import LISTED, Folder, named, open_folder
from pairun.base.paths import MOUNTED, PLAIN_FILES

_MAX_LINKS = 40
"""The most links in one path, as in the kernel (path_resolution(7))."""


class NotMounted(FileNotFoundError):
    """A file that the platform must mount lies on the volume itself, so it is ignored."""


class Door(Folder):
    """The only access to the shared volume.

    Reading a path in `MOUNTED` raises `NotMounted` unless the platform mounts it.

    Args:
        root: the shared volume; the path to it is trusted, everything below is not.
        mounted: the platform must mount every path that is read, not only those in `MOUNTED`.
    """

    def __init__(self, root: str, *, mounted: bool = False) -> None:
        super().__init__(root)
        self._mounted = mounted
        self._plain_files = bool(os.environ.get(PLAIN_FILES))

    def is_from_platform(self, path: str) -> bool:
        """Whether only the platform can have written what is at a path."""
        parts = self._parts(path)
        depth = _mount_depth(os.path.realpath(self._place), parts, self._mounts())
        return depth > 0 or self._is_plain(path)

    def exists(self, path: str) -> bool:
        """Whether a path exists, trusted or not."""
        try:
            with self._parent(path) as (folder, name):
                os.stat(name, dir_fd=folder, follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:
            return True  # something is in the way
        return True

    def open(self, path: str) -> BufferedReader:
        """Open a regular file to read; an engine's file must belong to this process's user."""
        file = super().open(path)
        if self._is_plain(path) and os.fstat(file.fileno()).st_uid != os.geteuid():
            file.close()
            raise NotMounted(errno.ENOENT, "it belongs to another user, and is not mounted", path)
        return file

    def make_root(self) -> None:
        """Create the root itself if it is missing."""
        os.makedirs(self._place, exist_ok=True)

    def protect_root(self) -> None:
        """Let only the owner write to the root, if this process's user owns it.

        Kubernetes creates an emptyDir that all may write to. Who may write to a directory can
        replace its entries, whatever their modes.
        """
        fd = self._open_root(LISTED)
        try:
            found = os.fstat(fd)
            if found.st_uid == os.geteuid() and found.st_mode & 0o022:
                os.fchmod(fd, stat.S_IMODE(found.st_mode) & ~0o022)
        finally:
            os.close(fd)

    def _is_plain(self, path: str) -> bool:
        """Whether an engine without mounts writes this file itself, judging by its path."""
        return self._plain_files and _is_mounted(self._parts(path))

    @contextlib.contextmanager
    def _source(self, path: str) -> Iterator[tuple[int, str]]:
        """As `_parent`; for paths that the platform mounts, follow the links that it makes."""
        parts = self._parts(path)
        if not (self._mounted or _is_mounted(parts)) or self._is_plain(path):
            with self._parent(path) as place:
                yield place
            return
        # First, since most jobs have none of these files, and the table of mounts is long.
        if not self.exists(path):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        root, mounts = os.path.realpath(self._place), self._mounts()
        if _mount_depth(root, parts, mounts) == 0:
            raise NotMounted(errno.ENOENT, "the platform did not mount it", path)
        with contextlib.ExitStack() as stack, named(path):
            yield _follow(self._open_root(), root, parts, mounts, stack)


def _is_mounted(parts: Sequence[str]) -> bool:
    """Whether the platform must mount the path with these names."""
    return not MOUNTED.isdisjoint(parts[:1])


def _mount_depth(root: str, parts: Sequence[str], mounts: frozenset[str]) -> int:
    """How many of the names lead to the innermost mount point on the path; 0 if there is none."""
    depths = range(len(parts), 0, -1)
    return next((n for n in depths if os.path.join(root, *parts[:n]) in mounts), 0)


def _follow(
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
            if len(names) <= _mount_depth(root, names, mounts):
                _leaves_mount(name)
            names.pop()
            fds.pop()
            continue
        found = os.stat(name, dir_fd=fds[-1], follow_symlinks=False)
        if stat.S_ISLNK(found.st_mode):
            links += 1
            target = os.readlink(name, dir_fd=fds[-1])
            if _mount_depth(root, names, mounts) == 0 or target.startswith("/"):
                _leaves_mount(name)
            if links > _MAX_LINKS:
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
