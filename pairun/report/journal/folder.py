"""A folder of journals that a person names: the way to it is theirs, what lies below is not trusted."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from io import BufferedReader

from pairun.handover.opening import LISTED, open_folder, open_regular
from pairun.handover.way import Way


class Folder:
    """Reads what lies below a folder, which a job's command may have put there; follows no link.

    Paths are given as they follow from the person's own. Methods that raise raise `OSError`.

    Args:
        path: the folder, as the person names it; it may be a link.
    """

    def __init__(self, path: str) -> None:
        self._named = os.path.abspath(path)
        self._way = Way(os.path.realpath(path))

    @contextlib.contextmanager
    def _holding(self, path: str) -> Iterator[tuple[int | None, str]]:
        """The open directory that holds a path's last name, and that name."""
        below = os.path.relpath(os.path.abspath(path), self._named)
        if below == ".":
            yield None, self._way.root
            return
        try:
            with self._way.holding(os.path.join(self._way.root, below)) as place:
                yield place
        except OSError as e:
            e.filename = path
            raise

    def _kind(self, path: str) -> int:
        """The kind of file at a path; 0 where nothing can be reached."""
        try:
            with self._holding(path) as (folder, name):
                return stat.S_IFMT(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
        except OSError:
            return 0

    def is_file(self, path: str) -> bool:
        """Whether a regular file stands at a path."""
        return self._kind(path) == stat.S_IFREG

    def is_folder(self, path: str) -> bool:
        """Whether a directory stands at a path."""
        return self._kind(path) == stat.S_IFDIR

    def folders(self, path: str) -> list[str]:
        """The names of the directories in a directory."""
        with self._holding(path) as (folder, name):
            fd = open_folder(folder, name, path, LISTED)
        try:
            with os.scandir(fd) as entries:
                return [e.name for e in entries if e.is_dir(follow_symlinks=False)]
        finally:
            os.close(fd)

    def modified(self, path: str) -> float:
        """When what stands at a path was changed, in seconds since the epoch."""
        with self._holding(path) as (folder, name):
            return os.stat(name, dir_fd=folder, follow_symlinks=False).st_mtime

    def open(self, path: str) -> BufferedReader:
        """A regular file, open to read."""
        with self._holding(path) as (folder, name):
            return os.fdopen(open_regular(name, os.O_RDONLY, folder=folder), "rb")
