"""Walks from the root of the shared volume to a path: name by name, following no link."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator

from pairun.base.mounts import mount_points
from pairun.base.paths import MOUNTED, PLAIN_FILES
from pairun.volume.opening import follow, mount_depth, named, open_folder


class NotMounted(FileNotFoundError):
    """A file that the platform must mount lies on the volume itself, so it is ignored."""


class Way:
    """Walks from the root to the directory that holds a path's last name.

    Args:
        root: the shared volume; the path to it is trusted, everything below is not.
    """

    def __init__(self, root: str) -> None:
        self.root = root
        self._place = os.path.abspath(root)
        self._plain_files = bool(os.environ.get(PLAIN_FILES))

    def __contains__(self, path: str) -> bool:
        """Whether a path lies below the root, by its names alone."""
        return os.path.abspath(path).startswith(self._place.rstrip("/") + "/")

    def is_from_platform(self, path: str) -> bool:
        """Whether only the platform can have written what is at a path."""
        parts = self._parts(path)
        depth = mount_depth(os.path.realpath(self._place), parts, self._mounts())
        return depth > 0 or self._is_plain(path)

    def exists(self, path: str) -> bool:
        """Whether a path exists, trusted or not."""
        try:
            os.close(self._open_root())
        except OSError:
            return False
        try:
            with self._parent(path) as (folder, name):
                os.stat(name, dir_fd=folder, follow_symlinks=False)
        except OSError as e:
            return e.errno not in (errno.ENOENT, errno.ENOTDIR)
        return True

    @contextlib.contextmanager
    def holding(self, path: str) -> Iterator[tuple[int, str]]:
        """The open directory that holds a path's last name, and that name; no link is followed.

        For callers that need more than the door's methods: others can redirect a path after it was
        checked, but not an open directory. The last name may be anything: open it with O_NOFOLLOW.

        Raises:
            OSError: a directory on the path is missing, or is a link.
        """
        with self._parent(path) as place:
            yield place

    def _parts(self, path: str) -> list[str]:
        """The names from the root to a path.

        Raises:
            OSError: the path does not lie below the root, by its names alone.
        """
        whole, start = os.path.abspath(path), self._place.rstrip("/") + "/"
        if whole.startswith(start) and "\0" not in path:
            return whole[len(start) :].split("/")
        raise OSError(errno.EINVAL, f"it is not below {self.root}", path)

    def _open_root(self) -> int:
        return open_folder(None, self._place, self._place)

    @contextlib.contextmanager
    def _parent(self, path: str) -> Iterator[tuple[int, str]]:
        """The open directory that holds a path's last name, and that name; no link is followed."""
        *above, last = self._parts(path)
        fd = self._open_root()
        try:
            for name in above:
                inner = open_folder(fd, name, path)
                os.close(fd)
                fd = inner
            with named(path):
                yield fd, last
        finally:
            os.close(fd)

    @contextlib.contextmanager
    def _source(self, path: str, *, mounted: bool) -> Iterator[tuple[int, str]]:
        """As `_parent`; for paths that the platform mounts, follow the links that it makes.

        Raises:
            NotMounted: the platform must mount the path, and does not.
        """
        parts = self._parts(path)
        if not (mounted or parts[0] in MOUNTED) or self._is_plain(path):
            with self._parent(path) as place:
                yield place
            return
        # First, since most jobs have none of these files, and the table of mounts is long.
        if not self.exists(path):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        root, mounts = os.path.realpath(self._place), self._mounts()
        if mount_depth(root, parts, mounts) == 0:
            raise NotMounted(errno.ENOENT, "the platform did not mount it", path)
        with contextlib.ExitStack() as stack, named(path):
            yield follow(self._open_root(), root, parts, mounts, stack)

    def _is_plain(self, path: str) -> bool:
        """Whether an engine without mounts writes this file itself, judging by its path."""
        return self._plain_files and self._parts(path)[0] in MOUNTED

    def _mounts(self) -> frozenset[str]:
        """The current mount points."""
        return mount_points()
