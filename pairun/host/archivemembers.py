"""Unpacks tar files, also compressed with gzip, bzip2 or xz, and zip files, with bounded reads.

Without bounds an archive decides how much Python reads into memory.
"""

from __future__ import annotations

import bz2
import functools
import gzip
import lzma
import os
import stat as stat_bits
import tarfile
import zipfile
from typing import IO, TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from pairun.host.archives import TargetTree

_PIECE = 256 * 1024
"""How many bytes are read at once."""

MAX_HEADER = 1024 * 1024
"""The largest header of one member (names, attributes); Python reads it into memory."""
_XZ_MEMORY = 256 * 1024 * 1024
_MAX_TARGET = 4096
_MAX_LIST = 64 * 1024 * 1024
"""The maximum size of the list of members, in bytes; Python reads it into memory."""


def unpack_tar(file: Any, tree: TargetTree) -> None:
    """Unpack every member of a tar file into a tree.

    Raises:
        Permanent: a member is not a file, directory or link, or leads outside of the tree.
        Exception: the file is damaged (`tarfile` raises several kinds).
    """
    source = Bounded(file, MAX_HEADER)
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
                source.may = member.size + MAX_HEADER
                with content:
                    tree.file(member.name, member.mode, functools.partial(content.read, _PIECE))
            else:
                raise tree.refuse("is not a file, directory or link", member.name)
            source.may = MAX_HEADER + 2 * _PIECE
            # The library keeps all members in memory.
            tar.members.clear()  # type: ignore[attr-defined]


def decompressed(file: IO[bytes], start: bytes) -> Any:
    """The content of a compressed file; its first bytes show the compression."""
    if start.startswith(b"\x1f\x8b"):
        return gzip.GzipFile(fileobj=file)
    if start.startswith(b"BZh"):
        return bz2.BZ2File(file)
    return _Xz(file) if start == b"\xfd7zXZ\0" else file


class _Xz:
    """An xz file with a memory limit, which `lzma.LZMAFile` does not have."""

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
                # Another stream may follow, after padding zeros.
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


class _Member(tarfile.TarInfo):
    """A member of a tar file; `tarfile` alone would take a damaged one for the end of the file."""

    @classmethod
    def fromtarfile(cls, tarfile: tarfile.TarFile) -> _Member:
        """Read the next member.

        Raises:
            ValueError: it is damaged.
        """
        try:
            return super().fromtarfile(tarfile)
        except (_TORN, _INVALID) as e:
            raise ValueError(str(e)) from e


_TORN: type[Exception] = getattr(tarfile, "TruncatedHeaderError")  # noqa: B009 - not in its stubs
_INVALID: type[Exception] = getattr(tarfile, "InvalidHeaderError")  # noqa: B009


def unpack_zip(file: IO[bytes], tree: TargetTree) -> None:
    """Unpack every member of a zip file into a tree.

    Raises:
        Permanent: a member is not a file, directory or link, is encrypted, or leads outside of the
            tree.
        Exception: the file is damaged (`zipfile` raises several kinds).
    """
    source = BoundedFile(file, _MAX_LIST)
    with zipfile.ZipFile(cast("IO[bytes]", source)) as archive:
        for member in archive.infolist():
            tree.count()
            # From here on we bound the reads.
            source.may = member.compress_size + MAX_HEADER
            _zip_member(archive, member, tree)


def _zip_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, tree: TargetTree) -> None:
    name = member.orig_filename
    # Only a zip file made on Unix contains Unix modes (APPNOTE 4.4.2).
    bits = member.external_attr >> 16 if member.create_system == 3 else 0
    kind = stat_bits.S_IFMT(bits)
    if kind not in (0, stat_bits.S_IFREG, stat_bits.S_IFDIR, stat_bits.S_IFLNK):
        raise tree.refuse("is not a file, directory or link", name)
    if member.flag_bits & 1:
        raise tree.refuse("is encrypted", name)
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2):
        raise tree.refuse(f"uses an unsupported compression method ({member.compress_type})", name)
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
            tree.file(name, bits & 0o777 or 0o644, functools.partial(content.read, _PIECE))


class Bounded:
    """A file whose `read` fails after ``may`` bytes; the caller resets it for each member."""

    def __init__(self, file: Any, may: int) -> None:
        self.may = may
        self._file = file

    def read(self, size: int = -1, /) -> bytes:
        """Read the next bytes."""
        data: bytes = self._file.read(min(size, self.may + 1) if size >= 0 else self.may + 1)
        self.may -= len(data)
        if self.may < 0:
            raise ValueError("the description of its members is too large")
        return data


class BoundedFile(Bounded):
    """`Bounded` for a file with positions."""

    def __init__(self, file: IO[bytes], may: int) -> None:
        super().__init__(file, may)
        self.seek, self.tell, self.seekable = file.seek, file.tell, file.seekable
