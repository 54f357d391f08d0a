"""Unpacks archives into directories; no member can lead outside of them.

Streams members into a temporary directory next to the target, and opens each step by step from
there, without following links. Does not use the library's extraction: not every Python 3.11 has
the filters that make it safe.
"""

from __future__ import annotations

import contextlib
import errno
import gzip
import io
import lzma
import os
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Mapping
from typing import BinaryIO

from pairun.host.archivemembers import decompressed, unpack_tar, unpack_zip
from pairun.host.failures import failure, os_failures
from pairun.host.place import Place
from pairun.host.tree import FOLDER, Limits, Tree
from pairun.module import Unpacked

_DAMAGED = (
    tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, ValueError,
    OverflowError, struct.error, RecursionError, LookupError, NotImplementedError, RuntimeError,
)  # fmt: skip


def unpack(
    file: BinaryIO, archive: str, directory: Place, limits: Limits, extra: Mapping[str, bytes]
) -> Unpacked:
    """Unpack an archive; the directory appears complete or not at all.

    Args:
        file: the archive, open: tar, also with gzip, bzip2 or xz, or zip.
        archive: its path, for messages.
        directory: where to unpack it; an existing one is replaced.
        limits: how much may be unpacked.
        extra: further files: name to content.

    Raises:
        Failure: see `pairun.module.Context.unpack`.
    """
    staging, old = (directory.beside(f".pairun-{x}") for x in ("unpack", "old"))
    for left_over in (staging, old):
        left_over.remove()
    with os_failures(f"unpack into {directory.path}"):
        os.mkdir(staging.name, 0o700, dir_fd=staging.folder)
        root = os.open(staging.name, FOLDER, dir_fd=staging.folder)
    try:
        tree = Tree(root, os.path.basename(archive), limits)
        for name, data in extra.items():
            tree.file(name, 0o644, io.BytesIO(data).read)
        done = Unpacked(*_members(file, archive, tree))
        os.fchmod(root, 0o755)
        _into_place(staging, directory, old)
    except BaseException:
        with contextlib.suppress(Exception):
            staging.remove()
        raise
    finally:
        os.close(root)
    return done


def _into_place(staging: Place, directory: Place, old: Place) -> None:
    with os_failures(f"unpack into {directory.path}"):
        try:
            staging.rename(directory)  # also onto an empty directory
        except OSError as e:
            if e.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                raise
        else:
            return
        directory.rename(old)
        try:
            staging.rename(directory)
        except OSError:
            old.rename(directory)
            raise
    old.remove()


def _members(file: BinaryIO, archive: str, tree: Tree) -> tuple[int, int]:
    """Unpack every member into the tree; returns their number and size in bytes."""
    before = tree.size
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
        why = f"is not an archive, or is damaged: {type(e).__name__}: {e}"
        raise tree.refuse(why, hint="tar, also with .gz, .bz2 or .xz, or zip") from e
    return tree.members, tree.size - before
