"""Archives become directories; nothing in them leads anywhere else.

Members are streamed into a directory of ours beside the target, each opened step by step from
there, without following a link. The library's own extraction is not used: the filters that make it
safe are not in every Python 3.11.
"""

from __future__ import annotations

import bz2
import contextlib
import errno
import functools
import gzip
import io
import lzma
import os
import stat as stat_bits
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import IO, Protocol, cast

import attrs

from pairun.host import files as hostfiles
from pairun.module import Permanent, Unpacked, format_size

_PIECE = 256 * 1024
_MAX_DEPTH = 100
_MAX_TARGET = 4096
# What stands before a member in a tar file: names, attributes. Python reads it into memory.
_MAX_HEADER = 1024 * 1024
# What lists the members of a zip file; Python reads it into memory.
_MAX_LIST = 64 * 1024 * 1024
_XZ_MEMORY = 256 * 1024 * 1024
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_DAMAGED = (
    tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, ValueError,
    OverflowError, struct.error, RecursionError, LookupError, NotImplementedError, RuntimeError,
)  # fmt: skip


@attrs.frozen
class Limits:
    """How much may come out of an archive."""

    max_bytes: int
    max_members: int


def unpack(archive: str, directory: str, limits: Limits, extra: Mapping[str, bytes]) -> Unpacked:
    """Unpack an archive; the directory appears whole, or not at all.

    Args:
        archive: a file: tar, also with gzip, bzip2 or xz, or zip.
        directory: where to; one that exists is replaced.
        limits: how much may come out.
        extra: further files: name to content.

    Raises:
        Failure: see `pairun.module.Context.unpack`.
    """
    directory = os.path.abspath(directory)
    staging, old = (hostfiles.beside(directory, f".pairun-{x}") for x in ("unpack", "old"))
    for left_over in (staging, old):
        hostfiles.remove(left_over)
    with _words(f"unpack into {directory}"):
        os.mkdir(staging, 0o700)
        root = os.open(staging, _DIRECTORY)
    try:
        tree = _Tree(root, os.path.basename(archive), limits)
        for name, data in extra.items():
            tree.file(name, 0o644, io.BytesIO(data).read)
        done = Unpacked(*_members(archive, tree))
        os.fchmod(root, 0o755)
        _into_place(staging, directory, old)
    except BaseException:
        with contextlib.suppress(Exception):
            hostfiles.remove(staging)
        raise
    finally:
        os.close(root)
    return done


def _into_place(staging: str, directory: str, old: str) -> None:
    with _words(f"unpack into {directory}"):
        try:
            os.rename(staging, directory)  # also onto an empty directory
        except OSError as e:
            if e.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                raise
        else:
            return
        os.rename(directory, old)
        try:
            os.rename(staging, directory)
        except OSError:
            os.rename(old, directory)
            raise
    hostfiles.remove(old)


@contextlib.contextmanager
def _words(doing: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as e:
        raise hostfiles.failure(e, doing) from e


# --- the tree ---------------------------------------------------------------------------------------


class _Tree:
    """A directory that is filled; whatever a name says, nothing outside it is touched.

    Attributes:
        members: how many were put into it.
        size: bytes of its files.
    """

    def __init__(self, root: int, archive: str, limits: Limits) -> None:
        self.members = 0
        self.size = 0
        self._root = root
        self._archive = archive
        self._limits = limits

    def refuse(self, why: str, name: str | None = None, hint: str | None = None) -> Permanent:
        """The failure that ends it all."""
        member = f": {name[:200]!r}" if name is not None else ""
        return Permanent(f"{self._archive}{member} {why}", fault="user", hint=hint)

    def count(self) -> None:
        """One more member."""
        self.members += 1
        if self.members > self._limits.max_members:
            raise self.refuse(f"has more than {self._limits.max_members} members", hint=_LIMIT_HINT)

    def directory(self, name: str, mode: int) -> None:
        """Make a directory, or find it made."""
        with self._opened(name, self._parts(name)) as fd, _words(f"unpack {name[:200]!r}"):
            if self._parts(name):
                os.fchmod(fd, mode & 0o755 | 0o700)

    def file(self, name: str, mode: int, read: Callable[[], bytes]) -> None:
        """Write a file; ``read`` gives the next piece, nothing at the end."""
        *above, last = self._parts(name) or self._nameless(name)
        with self._opened(name, above) as parent:
            with self._in_words(name):
                fd = os.open(last, _NEW_FILE, 0o600, dir_fd=parent)
            with open(fd, "wb", buffering=0) as out:
                for piece in iter(read, b""):
                    self.size += len(piece)
                    if self.size > self._limits.max_bytes:
                        limit = format_size(self._limits.max_bytes)
                        raise self.refuse(f"holds more than {limit}", hint=_LIMIT_HINT)
                    with self._in_words(name):
                        view = memoryview(piece)
                        while view:
                            view = view[out.write(view) or 0 :]
                with self._in_words(name):
                    os.fchmod(fd, mode & 0o755 | 0o600)

    def link(self, name: str, target: str) -> None:
        """Make a symbolic link that stays within the tree, whatever else is a link in it.

        Up it may go only first, and there from a real directory: then it comes to a real
        directory, and every link on its way down stays within the tree as well.
        """
        *above, last = self._parts(name) or self._nameless(name)
        steps = [s for s in target.split("/") if s not in ("", ".")]
        ups = 0
        while ups < len(steps) and steps[ups] == "..":
            ups += 1
        if not target or target.startswith("/") or ups > len(above) or ".." in steps[ups:]:
            raise self.refuse(f"is a link that leads outside, to {target[:200]!r}", name)
        with self._opened(name, above) as parent, self._in_words(name):
            os.symlink(target, last, dir_fd=parent)

    def hard_link(self, name: str, target: str) -> None:
        """Give a file that was unpacked before a second name."""
        *above, last = self._parts(name) or self._nameless(name)
        *target_above, target_last = self._parts(target) or self._nameless(target)
        with self._opened(name, above) as parent, self._opened(name, target_above) as source:
            try:
                found = os.stat(target_last, dir_fd=source, follow_symlinks=False)
            except (OSError, ValueError):
                found = None
            if found is None or not stat_bits.S_ISREG(found.st_mode):
                raise self.refuse(
                    f"is a link to {target[:200]!r}, which is no file before it", name
                )
            with self._in_words(name):
                os.link(
                    target_last, last, src_dir_fd=source, dst_dir_fd=parent, follow_symlinks=False
                )

    def _parts(self, name: str) -> list[str]:
        parts = [p for p in name.split("/") if p not in ("", ".")]
        if name.startswith("/") or ".." in parts or "\0" in name:
            raise self.refuse("leads outside of the directory it is unpacked into", name)
        if len(parts) > _MAX_DEPTH:
            raise self.refuse(f"lies more than {_MAX_DEPTH} directories deep", name)
        return parts

    def _nameless(self, name: str) -> list[str]:
        raise self.refuse("has no name", name)

    @contextlib.contextmanager
    def _opened(self, name: str, parts: list[str]) -> Iterator[int]:
        """A directory of the tree, open; it and those above it are made where they are missing."""
        fd = os.dup(self._root)
        try:
            for part in parts:
                with self._in_words(name):
                    try:
                        below = os.open(part, _DIRECTORY, dir_fd=fd)
                    except FileNotFoundError:
                        os.mkdir(part, 0o700, dir_fd=fd)
                        below = os.open(part, _DIRECTORY, dir_fd=fd)
                        os.fchmod(below, 0o755)
                os.close(fd)
                fd = below
            yield fd
        finally:
            os.close(fd)

    @contextlib.contextmanager
    def _in_words(self, name: str) -> Iterator[None]:
        try:
            yield
        except FileExistsError:
            raise self.refuse("comes twice", name) from None
        except OSError as e:
            if e.errno in (errno.ENOTDIR, errno.ELOOP):
                raise self.refuse("lies below what is no directory", name) from None
            raise hostfiles.failure(e, f"unpack {name[:200]!r}") from e
        except ValueError as e:
            raise hostfiles.failure(e, f"unpack {name[:200]!r}") from e


_LIMIT_HINT = "if that is right, allow more: max_unpacked_bytes, max_members"


# --- the archives -----------------------------------------------------------------------------------


def _members(archive: str, tree: _Tree) -> tuple[int, int]:
    """Put every member into the tree; say how many, and how many bytes."""
    try:
        # O_NONBLOCK: opening a named pipe would wait for a writer for ever.
        fd = os.open(archive, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as e:
        raise hostfiles.failure(e, f"read {archive}") from e
    if not stat_bits.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise tree.refuse("is not a regular file")
    before = tree.size
    with open(fd, "rb") as file:
        start = file.read(6)
        file.seek(0)
        try:
            if start.startswith((b"PK\3\4", b"PK\5\6")):
                _zip(file, tree)
            elif start.startswith(b"\x28\xb5\x2f\xfd"):
                raise tree.refuse("is packed with zstandard", hint="tar, .gz, .bz2, .xz, or zip")
            else:
                _tar(_unpacked(file, start), tree)
        except _DAMAGED as e:
            if isinstance(e, OSError) and not isinstance(e, gzip.BadGzipFile) and e.errno:
                raise hostfiles.failure(e, f"read {archive}") from e
            why = f"is no archive, or is damaged: {type(e).__name__}: {e}"
            raise tree.refuse(why, hint="tar, also with .gz, .bz2 or .xz, or zip") from e
    return tree.members, tree.size - before


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


def _unpacked(file: IO[bytes], start: bytes) -> _Readable:
    """The content of a packed file, by how it starts."""
    if start.startswith(b"\x1f\x8b"):
        return gzip.GzipFile(fileobj=file)
    if start.startswith(b"BZh"):
        return bz2.BZ2File(file)
    return _Xz(file) if start == b"\xfd7zXZ\0" else file


def _pieces(content: IO[bytes]) -> Callable[[], bytes]:
    return functools.partial(content.read, _PIECE)


class _Xz:
    """An xz file that takes no more memory than it may; lzma.LZMAFile knows no limit."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._inflater = self._new()

    @staticmethod
    def _new() -> lzma.LZMADecompressor:
        return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY)

    def read(self, size: int, /) -> bytes:
        """The next bytes, at most so many."""
        while True:
            data = b""
            if self._inflater.eof:
                # Another stream may follow, and zeros before it.
                data = self._inflater.unused_data.lstrip(b"\0")
                while not data:
                    if not (more := self._file.read(_PIECE)):
                        return b""
                    data = more.lstrip(b"\0")
                self._inflater = self._new()
            elif self._inflater.needs_input and not (data := self._file.read(_PIECE)):
                raise EOFError("it ends too early")
            if out := self._inflater.decompress(data, size):
                return out


class _Bounded:
    """Reads no more than it may until it is told again; an archive decides how much we read."""

    def __init__(self, file: _Readable, may: int) -> None:
        self.may = may
        self._file = file

    def read(self, size: int = -1, /) -> bytes:
        """The next bytes."""
        data = self._file.read(min(size, self.may + 1) if size >= 0 else self.may + 1)
        self.may -= len(data)
        if self.may < 0:
            raise ValueError("what describes its members is too large")
        return data


class _BoundedFile(_Bounded):
    """The same, for a file in which one may look around."""

    def __init__(self, file: IO[bytes], may: int) -> None:
        super().__init__(file, may)
        self.seek, self.tell, self.seekable = file.seek, file.tell, file.seekable


class _Member(tarfile.TarInfo):
    """A member of a tar file; the library takes a broken one in the middle for the end."""

    @classmethod
    def fromtarfile(cls, tarfile: tarfile.TarFile) -> _Member:
        """Read the next member.

        Raises:
            ValueError: what stands there is none, nor the end.
        """
        try:
            return super().fromtarfile(tarfile)
        except (_TORN, _INVALID) as e:
            raise ValueError(str(e)) from e


_TORN: type[Exception] = getattr(tarfile, "TruncatedHeaderError")  # noqa: B009 - not in its stubs
_INVALID: type[Exception] = getattr(tarfile, "InvalidHeaderError")  # noqa: B009


def _tar(file: _Readable, tree: _Tree) -> None:
    source = _Bounded(file, _MAX_HEADER)
    with tarfile.open(
        fileobj=cast("IO[bytes]", source),  # a stream is only read
        mode="r|",
        bufsize=_PIECE,
        tarinfo=_Member,
        encoding="utf-8",
        errors="surrogateescape",
    ) as tar:
        while (member := tar.next()) is not None:
            tree.count()
            if member.isdir():
                tree.directory(member.name, member.mode)
            elif member.issym():
                tree.link(member.name, member.linkname)
            elif member.islnk():
                tree.hard_link(member.name, member.linkname)
            elif member.isreg() and (content := tar.extractfile(member)) is not None:
                source.may = member.size + _MAX_HEADER
                with content:
                    tree.file(member.name, member.mode, _pieces(content))
            else:
                raise tree.refuse("is no file, directory or link", member.name)
            source.may = _MAX_HEADER + 2 * _PIECE
            # The library keeps them all.
            tar.members.clear()  # type: ignore[attr-defined]


def _zip(file: IO[bytes], tree: _Tree) -> None:
    source = _BoundedFile(file, _MAX_LIST)
    with zipfile.ZipFile(cast("IO[bytes]", source)) as archive:
        for member in archive.infolist():
            tree.count()
            # What is read now is ours to bound.
            source.may = member.compress_size + _MAX_HEADER
            _zip_member(archive, member, tree)


def _zip_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, tree: _Tree) -> None:
    name = member.orig_filename
    # Only a zip file made on Unix has Unix's modes (APPNOTE 4.4.2).
    bits = member.external_attr >> 16 if member.create_system == 3 else 0
    kind = stat_bits.S_IFMT(bits)
    if kind not in (0, stat_bits.S_IFREG, stat_bits.S_IFDIR, stat_bits.S_IFLNK):
        raise tree.refuse("is no file, directory or link", name)
    if member.flag_bits & 1:
        raise tree.refuse("is encrypted", name)
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2):
        raise tree.refuse(f"is packed in a way not known here ({member.compress_type})", name)
    if member.is_dir() or kind == stat_bits.S_IFDIR:
        tree.directory(name, bits & 0o777 or 0o755)
        return
    with archive.open(member) as content:
        if kind == stat_bits.S_IFLNK:
            target = content.read(_MAX_TARGET + 1)
            if len(target) > _MAX_TARGET:
                raise tree.refuse("is a link with too long a target", name)
            tree.link(name, os.fsdecode(target))
        else:
            tree.file(name, bits & 0o777 or 0o644, _pieces(content))
