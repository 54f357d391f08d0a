"""Reads the platform's files in an init container: outside the shared volume or mounted into it."""

from __future__ import annotations

import os

from pairun.errors import PairunError, Problem, Problems
from pairun.playbook.document.texts import MAX_BYTES, load_bytes
from pairun.volume.door import Door


class PodFiles:
    """Reads the platform's files; trusts files on the shared volume only if they are mounted there.

    The user's container may write to the volume, and an init container runs again when its Pod's
    sandbox is recreated. Mounts into the volume are read-only for both.

    Args:
        pai_dir: the shared volume.
        problems: takes a warning for each file that is not trusted.
    """

    def __init__(self, pai_dir: str, problems: Problems) -> None:
        self._door = Door(pai_dir, mounted=True)
        self._problems = problems

    def counts(self, path: str, hint: str) -> bool:
        """Whether a path exists and only the platform can have written it.

        Args:
            path: a file or folder.
            hint: what to do if it is not trusted.
        """
        if path not in self._door:
            return os.path.exists(path)
        if not self._door.exists(path):
            return False
        if self._door.is_from_platform(path):
            return True
        self._problems.warning(
            "PR718",
            f"{path} is ignored: it is on the shared volume, where the user's container can write",
            None,
            hint,
        )
        return False

    def is_folder(self, path: str) -> bool:
        """Whether a trusted path is a folder."""
        return os.path.isdir(path) if path not in self._door else self._names(path) is not None

    def names(self, path: str) -> list[str]:
        """The sorted names in a trusted folder.

        Raises:
            PairunError: it cannot be listed.
        """
        try:
            return sorted(os.listdir(path)) if path not in self._door else self._names(path) or []
        except OSError as e:
            raise _unreadable(path, e) from e

    def _names(self, path: str) -> list[str] | None:
        try:
            return self._door.names(path)
        except NotADirectoryError:
            return None

    def load(self, path: str, limit: int = MAX_BYTES) -> bytes:
        """The content of a trusted file.

        Args:
            path: the file.
            limit: the largest size allowed, in bytes.

        Raises:
            PairunError: it cannot be read.
        """
        if path not in self._door:
            return load_bytes(path, limit)
        try:
            return self._door.read(path, limit)
        except OSError as e:
            raise _unreadable(path, e) from e


def _unreadable(path: str, error: OSError) -> PairunError:
    return PairunError(Problem("PR108", f"{path} cannot be read: {error.strerror}"))
