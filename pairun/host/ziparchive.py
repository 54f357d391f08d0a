"""Zip archives."""

from __future__ import annotations

import os
import stat as stat_bits
import zipfile
from typing import IO, cast

from pairun.host.boundedreading import MAX_HEADER, BoundedFile, pieces
from pairun.host.tree import Tree

_MAX_TARGET = 4096
_MAX_LIST = 64 * 1024 * 1024
"""The maximum size of the list of members, in bytes; Python reads it into memory."""


def unpack_zip(file: IO[bytes], tree: Tree) -> None:
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


def _zip_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, tree: Tree) -> None:
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
            tree.file(name, bits & 0o777 or 0o644, pieces(content))
