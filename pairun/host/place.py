"""The target of an effect: a name in an open directory, which no link can redirect."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import NamedTuple

from pairun.base.mounts import mount_points
from pairun.base.removal import remove_entry
from pairun.host.failures import removing
from pairun.host.files import beside
from pairun.volume.door import Door
from pairun.volume.opening import FOLDER


class Place(NamedTuple):
    """A name in an open directory.

    Attributes:
        folder: the open directory.
        name: the last name of the path.
        path: the whole path, for people.
        survives: whether it must survive a crash of the machine; not on the shared volume, which is
            empty after a crash.
    """

    folder: int
    name: str
    path: str
    survives: bool

    def beside(self, suffix: str) -> Place:
        """A hidden name in the same directory, for a temporary file that belongs to this one."""
        name = beside(self.name, suffix)
        return self._replace(name=name, path=os.path.join(os.path.dirname(self.path), name))

    def rename(self, target: Place) -> None:
        """Move this entry to another place on the same file system, atomically.

        Raises:
            OSError: it cannot be moved.
        """
        os.rename(self.name, target.name, src_dir_fd=self.folder, dst_dir_fd=target.folder)
        if target.survives:
            target.sync()

    def sync(self) -> None:
        """Sync the directory to the disk."""
        # Some network file systems cannot sync a directory; the file itself is already on disk.
        with contextlib.suppress(OSError):
            fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self.folder)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)

    def remove(self) -> None:
        """Remove this entry and everything below it, but no mount point.

        Raises:
            Failure: something cannot be removed.
        """
        with removing(self.path):
            above = os.path.realpath(os.path.dirname(os.path.abspath(self.path)))
            remove_entry(self.folder, self.name, os.path.join(above, self.name), mount_points())


@contextlib.contextmanager
def place_of(path: str, door: Door) -> Iterator[Place]:
    """The place of a path; on the shared volume through the door, which follows no links.

    Args:
        path: the path; its last name need not exist.
        door: to the shared volume.

    Raises:
        OSError: the directory is missing, or a link on the volume leads to it.
    """
    if path in door:
        with door.holding(path) as (folder, name):
            yield Place(folder, name, path, survives=False)
        return
    above, name = os.path.split(os.path.abspath(path))
    # Links elsewhere belong to the machine: open like `FOLDER`, without O_NOFOLLOW.
    folder = os.open(above, FOLDER & ~os.O_NOFOLLOW)
    try:
        yield Place(folder, name, path, survives=True)
    finally:
        os.close(folder)
