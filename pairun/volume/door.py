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

from pairun.base.folder import LISTED, Folder, named
from pairun.base.paths import MOUNTED, PLAIN_FILES


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
        return self._mount_point(path) is not None or self._is_plain(path)

    def exists(self, path: str) -> bool:
        """Whether a path exists, trusted or not."""
        try:
            with self._parent(path) as (folder, name):
                os.stat(name, dir_fd=folder, follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as e:
            # Something is in the way; who prepares the volume reports what is wrong with its root.
            return bool(e.filename != self._place)
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
        if (mount := self._mount_point(path)) is None:
            raise NotMounted(errno.ENOENT, "the platform did not mount it", path)
        root = os.path.realpath(self._place)
        real = os.path.realpath(os.path.join(root, *parts))
        if not f"{real}/".startswith(f"{mount}/"):
            why = f"'{parts[-1]}' leads out of the mount, and is not followed"
            raise OSError(errno.ELOOP, why, path)
        # This opens what the links led to, and follows none that appears meanwhile.
        with (
            named(path),
            self._parent(os.path.join(self._place, os.path.relpath(real, root))) as place,
        ):
            yield place

    def _mount_point(self, path: str) -> str | None:
        """The innermost mount point on a path, without links; None if there is none."""
        root, parts, mounts = os.path.realpath(self._place), self._parts(path), self._mounts()
        places = (os.path.join(root, *parts[:n]) for n in range(len(parts), 0, -1))
        return next((p for p in places if p in mounts), None)


def _is_mounted(parts: Sequence[str]) -> bool:
    """Whether the platform must mount the path with these names."""
    return not MOUNTED.isdisjoint(parts[:1])
