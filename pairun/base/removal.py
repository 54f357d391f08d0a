"""Removes a directory tree that other processes may change; follows no links."""

from __future__ import annotations

import errno
import os
import stat

MAX_DEPTH = 400
"""Directories nested deeper are not removed: each level needs an open directory."""

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def remove_entry(folder: int, name: str, path: str, mounts: frozenset[str]) -> bool:
    """Remove one entry of an open directory and everything below it.

    Keeps mount points and the directories above them. Ignores entries that disappear meanwhile.

    Args:
        folder: the open directory.
        name: the entry's name in it.
        path: the entry's path without symbolic links, as in the mount table.
        mounts: every mount point.

    Returns:
        Whether the entry is gone.

    Raises:
        OSError: something cannot be removed.
    """
    return _remove(folder, name, path, os.fstat(folder).st_dev, mounts, 0)


def _remove(
    folder: int, name: str, path: str, device: int, mounts: frozenset[str], depth: int
) -> bool:
    """Remove recursively; `MAX_DEPTH` bounds stack frames and open directories."""
    if path in mounts:
        return False
    if depth > MAX_DEPTH:
        raise OSError(errno.ENAMETOOLONG, "the directories are nested too deeply")
    try:
        entry = os.stat(name, dir_fd=folder, follow_symlinks=False)
        # Only the table shows a bind mount within one file system. The device number shows other
        # mounts, even if the table cannot be read.
        if entry.st_dev != device:
            return False
        if not stat.S_ISDIR(entry.st_mode):
            os.unlink(name, dir_fd=folder)
            return True
        inner = os.open(name, _DIRECTORY, dir_fd=folder)
        try:
            all_gone = True
            for child in os.listdir(inner):
                below = os.path.join(path, child)
                all_gone &= _remove(inner, child, below, device, mounts, depth + 1)
        finally:
            os.close(inner)
        if all_gone:
            os.rmdir(name, dir_fd=folder)
    except FileNotFoundError:
        return True
    except OSError as e:
        if e.errno == errno.ENOTEMPTY:
            raise OSError(errno.ENOTEMPTY, "a process keeps writing into it", path) from e
        raise
    return all_gone
