"""Tar archives, also compressed with gzip, bzip2 or xz."""

from __future__ import annotations

import bz2
import gzip
import lzma
import tarfile
from typing import IO, cast

from pairun.host.boundedreading import MAX_HEADER, PIECE, Bounded, Readable, pieces
from pairun.host.tree import Tree

_XZ_MEMORY = 256 * 1024 * 1024


def unpack_tar(file: Readable, tree: Tree) -> None:
    """Unpack every member of a tar file into a tree.

    Raises:
        Permanent: a member is not a file, directory or link, or leads outside of the tree.
        Exception: the file is damaged (`tarfile` raises several kinds).
    """
    source = Bounded(file, MAX_HEADER)
    with tarfile.open(
        fileobj=cast("IO[bytes]", source),  # a stream is only read
        mode="r|",
        bufsize=PIECE,
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
                    tree.file(member.name, member.mode, pieces(content))
            else:
                raise tree.refuse("is not a file, directory or link", member.name)
            source.may = MAX_HEADER + 2 * PIECE
            # The library keeps all members in memory.
            tar.members.clear()  # type: ignore[attr-defined]


def decompressed(file: IO[bytes], start: bytes) -> Readable:
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
                    if not (more := self._file.read(PIECE)):
                        return b""
                    data = more.lstrip(b"\0")
                self._inflater = self._new()
            elif self._inflater.needs_input and not (data := self._file.read(PIECE)):
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
