"""A folder of journals that a person names: the path to it is trusted, its contents are not."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from io import BufferedReader

from pairun.volume.opening import LISTED, open_folder, open_regular
from pairun.volume.way import Way


class Folder:
    """Reads files below a folder to which a job's command may have written; follows no link.

    Paths begin with the person's own path. All methods that raise raise `OSError`.

    Args:
        path: the folder, as the person names it; may be a link.
    """

    def __init__(self, path: str) -> None:
        self._named = os.path.abspath(path)
        self._way = Way(os.path.realpath(path))

    @contextlib.contextmanager
    def _holding(self, path: str) -> Iterator[tuple[int | None, str]]:
        """Open the directory that contains a path's last name; yields it and that name."""
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
        """The kind of the file at a path; 0 if it cannot be reached."""
        try:
            with self._holding(path) as (folder, name):
                return stat.S_IFMT(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
        except OSError:
            return 0

    def is_file(self, path: str) -> bool:
        """Whether a path is a regular file."""
        return self._kind(path) == stat.S_IFREG

    def is_folder(self, path: str) -> bool:
        """Whether a path is a directory."""
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
        """The modification time of a file, in seconds since the epoch."""
        with self._holding(path) as (folder, name):
            return os.stat(name, dir_fd=folder, follow_symlinks=False).st_mtime

    def open(self, path: str) -> BufferedReader:
        """Open a regular file for reading."""
        with self._holding(path) as (folder, name):
            return os.fdopen(open_regular(name, os.O_RDONLY, folder=folder), "rb")
