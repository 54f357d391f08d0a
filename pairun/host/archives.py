"""Archives become directories; nothing in them leads anywhere else.

Members are streamed into a directory of ours beside the target, each opened step by step from
there, without following a link. The library's own extraction is not used: the filters that make it
safe are not in every Python 3.11.
"""

from __future__ import annotations

import contextlib
import errno
import gzip
import io
import lzma
import os
import stat as stat_bits
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Mapping

from pairun.host import files
from pairun.host.failures import failure, in_words
from pairun.host.tararchive import decompressed, unpack_tar
from pairun.host.tree import FOLDER, Limits, Tree
from pairun.host.ziparchive import unpack_zip
from pairun.module import Unpacked

_DAMAGED = (
    tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, ValueError,
    OverflowError, struct.error, RecursionError, LookupError, NotImplementedError, RuntimeError,
)  # fmt: skip


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
    staging, old = (files.beside(directory, f".pairun-{x}") for x in ("unpack", "old"))
    for left_over in (staging, old):
        files.remove(left_over)
    with in_words(f"unpack into {directory}"):
        os.mkdir(staging, 0o700)
        root = os.open(staging, FOLDER)
    try:
        tree = Tree(root, os.path.basename(archive), limits)
        for name, data in extra.items():
            tree.file(name, 0o644, io.BytesIO(data).read)
        done = Unpacked(*_members(archive, tree))
        os.fchmod(root, 0o755)
        _into_place(staging, directory, old)
    except BaseException:
        with contextlib.suppress(Exception):
            files.remove(staging)
        raise
    finally:
        os.close(root)
    return done


def _into_place(staging: str, directory: str, old: str) -> None:
    with in_words(f"unpack into {directory}"):
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
    files.remove(old)


def _members(archive: str, tree: Tree) -> tuple[int, int]:
    """Put every member into the tree; returns their number and their bytes."""
    try:
        # O_NONBLOCK: opening a named pipe would wait for a writer for ever.
        fd = os.open(archive, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as e:
        raise failure(e, f"read {archive}") from e
    if not stat_bits.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise tree.refuse("is not a regular file")
    before = tree.size
    with open(fd, "rb") as file:
        start = file.read(6)
        file.seek(0)
        try:
            if start.startswith((b"PK\3\4", b"PK\5\6")):
                unpack_zip(file, tree)
            elif start.startswith(b"\x28\xb5\x2f\xfd"):
                raise tree.refuse("is packed with zstandard", hint="tar, .gz, .bz2, .xz, or zip")
            else:
                unpack_tar(decompressed(file, start), tree)
        except _DAMAGED as e:
            if isinstance(e, OSError) and not isinstance(e, gzip.BadGzipFile) and e.errno:
                raise failure(e, f"read {archive}") from e
            why = f"is no archive, or is damaged: {type(e).__name__}: {e}"
            raise tree.refuse(why, hint="tar, also with .gz, .bz2 or .xz, or zip") from e
    return tree.members, tree.size - before
