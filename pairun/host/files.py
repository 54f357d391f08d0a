"""Files of this machine, outside of the shared volume, and facts about files for modules."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections.abc import Iterator
from io import BufferedReader

from pairun.base.folder import FOLDER, Folder
from pairun.module import FileStat

ABSENT = (FileNotFoundError, NotADirectoryError)
"""What says that nothing exists at a path."""

Identity = tuple[int, ...]
"""Device, inode, size and times of a file; they change when its content changes."""

_KINDS = {stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "link"}
_MAX_NAME = 255


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

    def make_folder(self, path: str, mode: int = 0o755, *, parents: bool = True) -> None:
        """Create a directory with exactly this mode; new parents get the mode of the umask."""
        if os.path.isdir(path):
            return
        if parents:
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
        fd = os.open(above, FOLDER & ~os.O_NOFOLLOW)
        try:
            yield fd, name
        finally:
            os.close(fd)


MACHINE = Machine()


def facts(found: os.stat_result) -> FileStat:
    """The result of lstat(2) in the form for modules."""
    kind = _KINDS.get(stat.S_IFMT(found.st_mode), "other")
    mode = stat.S_IMODE(found.st_mode)
    return FileStat(kind, mode, found.st_size, found.st_uid, found.st_gid)  # type: ignore[arg-type]


def identity_of(found: os.stat_result) -> Identity:
    """The identity of a file."""
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def digest(file: BufferedReader, known: dict[Identity, str]) -> str:
    """The SHA-256 of an open file.

    Args:
        file: the file.
        known: digests of files read or written earlier; this one is added.
    """
    if (identity := identity_of(os.fstat(file.fileno()))) not in known:
        known[identity] = hashlib.file_digest(file, "sha256").hexdigest()
    return known[identity]


def hidden_name(name: str, suffix: str) -> str:
    """The name of a hidden file that belongs to another one in the same directory."""
    if len(os.fsencode(name)) + len(suffix) + 1 > _MAX_NAME:
        name = hashlib.sha256(os.fsencode(name)).hexdigest()
    return f".{name}{suffix}"
