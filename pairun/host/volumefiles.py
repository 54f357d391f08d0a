"""`pairun.host.files` for the shared volume: goes through the door, which follows no links."""

from __future__ import annotations

import hashlib
import os

from pairun.host.failures import os_failures, removing
from pairun.host.files import Identity, identity_of, stat_of
from pairun.module import FileStat
from pairun.volume.door import Door


class VolumeFiles:
    """Files of the shared volume, with the methods of `pairun.host.files`.

    Does not sync to the disk: after a crash of the machine the Pod starts from the beginning, and
    writes the volume again.

    Args:
        door: to the shared volume.
    """

    def __init__(self, door: Door) -> None:
        self._door = door

    def stat(self, path: str) -> FileStat | None:
        """The properties of a path; None if nothing exists there, or if a link leads there."""
        with os_failures(f"look at {path}"):
            status = self._door.stat(path)
        return None if status is None else stat_of(status)

    def read(self, path: str, max_bytes: int) -> bytes | None:
        """A regular file's content, or None if there is no file.

        Raises:
            Permanent: it is no regular file, larger than ``max_bytes``, or not readable.
        """
        with os_failures(f"read {path}"):
            try:
                return self._door.read(path, max_bytes)
            except (FileNotFoundError, NotADirectoryError):
                return None

    def digest(self, path: str, known: dict[Identity, str]) -> str | None:
        """The SHA-256 of a regular file, or None if there is no file.

        Args:
            path: the file.
            known: digests by identity, of files read or written earlier; this one is added.

        Raises:
            Permanent: it is no regular file, or not readable.
        """
        with os_failures(f"read {path}"):
            try:
                file = self._door.open(path)
            except (FileNotFoundError, NotADirectoryError):
                return None
            with file:
                if (identity := identity_of(os.fstat(file.fileno()))) not in known:
                    known[identity] = hashlib.file_digest(file, "sha256").hexdigest()
                return known[identity]

    def names(self, path: str) -> list[str] | None:
        """The sorted names in a directory, or None if there is no directory."""
        with os_failures(f"list {path}"):
            try:
                return self._door.names(path)
            except (FileNotFoundError, NotADirectoryError):
                return None

    def write(self, path: str, data: bytes, mode: int) -> None:
        """Replace a file atomically; a link at ``path`` is replaced.

        Raises:
            Failure: the directory is missing, read-only, full, owned by another user, …
        """
        with os_failures(f"write {path}"):
            self._door.write(path, data, mode)

    def make_directory(self, path: str, mode: int) -> None:
        """Make a directory with exactly this mode, and its parents; keeps an existing one."""
        with os_failures(f"make the directory {path}"):
            self._door.make_folder(path, mode)

    def set_mode(self, path: str, mode: int) -> None:
        """Set the permissions of a file or directory."""
        with os_failures(f"set the mode of {path}"):
            self._door.set_mode(path, mode)

    def remove(self, path: str) -> None:
        """Remove a path and everything below it, but no mount point."""
        with removing(path):
            self._door.remove(path)
