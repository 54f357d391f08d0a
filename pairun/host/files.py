"""Facts about files for modules: status, identity, digest, the name of a hidden file."""

from __future__ import annotations

import os
import stat
from io import BufferedReader

from pairun.module import FileStat

NOTHING_THERE = (FileNotFoundError, NotADirectoryError)
"""What says that nothing exists at a path."""

Identity = tuple[int, ...]
"""Device, inode, size and times of a file; they change when its content changes."""

_KINDS = {stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "link"}
_MAX_NAME = 255


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
        known: digests of files read or written earlier; this one is added.
    """
    import hashlib  # imports OpenSSL, which most tasks do not need

    if (identity := identity_of(os.fstat(file.fileno()))) not in known:
        known[identity] = hashlib.file_digest(file, "sha256").hexdigest()
    return known[identity]


def hidden_name(name: str, suffix: str) -> str:
    """The name of a hidden file that belongs to another one in the same directory."""
    if len(os.fsencode(name)) + len(suffix) + 1 > _MAX_NAME:
        import hashlib

        name = hashlib.sha256(os.fsencode(name)).hexdigest()
    return f".{name}{suffix}"
