"""All files of this machine, as a `Folder`."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from pairun.base.folder import FOLDER, Folder, named


class Machine(Folder):
    """All files of this machine: links belong to it, so they are followed on the way to a path.

    What is written survives a crash. A path on the shared volume needs its `Door`.
    """

    follows_links = True

    def __init__(self) -> None:
        super().__init__("/", survives=True)

    def names(self, path: str) -> list[str]:
        """The sorted names in a directory, which may be a link."""
        return sorted(os.listdir(path))

    def make_folder(
        self, path: str, mode: int = 0o755, *, parents_mode: int | None = 0o755
    ) -> None:
        """Create a directory with exactly this mode; new parents get the mode of the umask."""
        if os.path.isdir(path):
            return
        if parents_mode is not None:
            os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
        try:
            os.mkdir(path, mode)
        except FileExistsError:
            if not os.path.isdir(path):
                raise
        else:
            os.chmod(path, mode)  # mkdir(2) subtracts the umask

    @contextlib.contextmanager
    def _parent(self, path: str) -> Iterator[tuple[int, str]]:
        above, name = os.path.split(os.path.abspath(path))
        if not name:
            raise self._not_below(path)
        with named(path):
            fd = os.open(above, FOLDER & ~os.O_NOFOLLOW)
            try:
                yield fd, name
            finally:
                os.close(fd)


MACHINE = Machine()
