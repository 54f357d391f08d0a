"""The source of a module: one file or a folder of files, read completely and digested."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from pairun.base.folder import Folder
from pairun.base.machine import MACHINE
from pairun.base.paths import built_in_folder
from pairun.errors import PairunError, Place, Source

ENTRY = "__init__.py"
"""The file of a folder that defines or imports the module class."""
_MAX_BYTES = 16 * 1024 * 1024
"""The maximum size of one module's files together, in bytes."""
MAX_ENTRIES = 1000
"""The maximum number of files and folders of one module."""
_SKIPPED = "__pycache__"


class ModuleSource(NamedTuple):
    """The bytes of a module at the time when it was read.

    Attributes:
        path: the file or the folder.
        files: bytes by path within the folder, with ``/`` as separator; for a file by its name.
        is_folder: whether `path` is a folder.
    """

    path: str
    files: Mapping[str, bytes]
    is_folder: bool

    @property
    def entry(self) -> str:
        """The key in `files` of the file that is executed first."""
        return ENTRY if self.is_folder else next(iter(self.files))

    def place(self, file: str) -> str:
        """The path on disk of one of `files`."""
        return os.path.join(self.path, file) if self.is_folder else self.path

    def at(self, file: str, line: int, column: int = 1) -> Place:
        """A place in one of `files`, for a problem."""
        text = self.files[file].decode("utf-8", "replace")
        return Place(Source(self.place(file), "file", text), line, column)

    def sha256(self) -> str:
        """The hex digest: for a file over its bytes, for a folder over sorted paths and bytes.

        In a folder each file counts as its path, a NUL, its length in decimal, a NUL, its bytes. So
        no two folders give the same sequence.
        """
        # This imports OpenSSL, and every attempt is a fork that contains all imports.
        import hashlib

        if not self.is_folder:
            return hashlib.sha256(self.files[self.entry]).hexdigest()
        digest = hashlib.sha256()
        for path, data in sorted((os.fsencode(p), d) for p, d in self.files.items()):
            digest.update(b"%s\0%d\0" % (path, len(data)) + data)
        return digest.hexdigest()


def built_in_modules() -> dict[str, str]:
    """Name to path of pairun's own modules."""
    return module_paths(os.path.join(built_in_folder(), "modules"))


def module_paths(folder: str) -> dict[str, str]:
    """Name to path of the modules in a folder: ``NAME.py``, or ``NAME/`` with an ``__init__.py``.

    Ignores names that begin with ``_`` or ``.``.

    Raises:
        PairunError: a module exists both as a file and as a folder.
    """
    paths: dict[str, str] = {}
    for entry in _names_in(folder):
        path = os.path.join(folder, entry)
        if entry.startswith(("_", ".")):
            continue
        if entry.endswith(".py"):
            name = entry.removesuffix(".py")
        elif os.path.isfile(os.path.join(path, ENTRY)):
            name = entry
        else:
            continue
        if name in paths:
            message = f"the module {name} is in {folder} twice: {name}.py and {name}/"
            raise PairunError.of("PR602", message, hint="remove one of them")
        paths[name] = path
    return paths


def _names_in(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def module_at(path: str) -> str | None:
    """The module to which a path belongs (a file, a folder, or a file in one), or None."""
    is_folder = os.path.isdir(path)
    module = path if path.endswith(".py") and not is_folder else None
    folder = os.path.abspath(path if is_folder else os.path.dirname(path))
    while os.path.isfile(os.path.join(folder, ENTRY)):
        module, folder = folder, os.path.dirname(folder)
    return module


def read_source(name: str, path: str, files: Folder = MACHINE) -> ModuleSource:
    """Read a module, which is a file or a folder.

    Every regular file in a folder belongs to the module, except those below ``__pycache__``.

    Args:
        path: the file, which may be a link (Kubernetes mounts ConfigMaps so), or the folder.

    Raises:
        PairunError: a path cannot be read, is a link in a folder or not a regular file, or there
            are too many.
    """
    path = path.rstrip("/")
    reader = _Reader(path, files)
    try:
        info = files.stat(path)
        if info is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        if stat.S_ISDIR(info.st_mode):
            return ModuleSource(path=path, files=dict(reader.folder("")), is_folder=True)
        if stat.S_ISLNK(info.st_mode) and os.path.isdir(path):
            raise _link(path)
        return ModuleSource(
            path=path, files={os.path.basename(path): reader.file(path)}, is_folder=False
        )
    except OSError as e:
        raise _unreadable(name, e, path) from e


def _link(path: str) -> OSError:
    return OSError(errno.ELOOP, "it is a symbolic link", path)


def _unreadable(name: str, error: OSError, path: str) -> PairunError:
    where = error.filename if isinstance(error.filename, str) else path
    message = f"the module {name} cannot be read from {where}: {error.strerror}"
    hint = None
    if error.errno == errno.ELOOP:
        hint = "replace it with a file: the digest of a module's folder covers files, not links"
    return PairunError.of("PR602", message, hint=hint)


class _Reader:
    """Reads everything below one path, within the limits for one module."""

    def __init__(self, path: str, files: Folder) -> None:
        self._path = path
        self._disk = files
        self._bytes = 0
        self._entries = 0

    def folder(self, prefix: str) -> Iterator[tuple[str, bytes]]:
        """The files in a folder and its subfolders, by path within the module."""
        for entry in sorted(self._disk.names(os.path.join(self._path, prefix))):
            if entry == _SKIPPED:
                continue
            self._entries += 1
            if self._entries > MAX_ENTRIES:
                raise OSError(
                    errno.EFBIG, f"it has more than {MAX_ENTRIES} files and folders", self._path
                )
            inner = prefix + entry
            path = os.path.join(self._path, inner)
            info = self._disk.stat(path)
            if info is not None and stat.S_ISLNK(info.st_mode):
                raise _link(path)
            if info is not None and stat.S_ISDIR(info.st_mode):
                yield from self.folder(f"{inner}/")
            else:
                yield inner, self.file(path)

    def file(self, path: str) -> bytes:
        """The bytes of a file."""
        try:
            data = self._disk.read(path, _MAX_BYTES - self._bytes)
        except OSError as e:
            if e.errno == errno.EFBIG:
                e.strerror = f"the files are larger than {_MAX_BYTES >> 20} MiB together"
            raise
        self._bytes += len(data)
        return data
