"""Removal of a directory tree that others may change meanwhile: no link is followed."""

from __future__ import annotations

import errno
import os
import stat

MAX_DEPTH = 400
"""Directories nested deeper than this are not removed: each level costs an open directory."""

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def remove_entry(folder: int, name: str, path: str, mounts: frozenset[str]) -> bool:
    """Remove one entry of an open directory and all below it.

    Mount points stay, and so do the directories that lead to them. An entry that vanishes
    meanwhile is no error.

    Args:
        folder: the open directory.
        name: the entry's name in it.
        path: the entry's path without symbolic links, as the mount table has it.
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
    """One stack frame and one open directory per level: the limits of both are far away."""
    if path in mounts:
        return False
    if depth > MAX_DEPTH:
        raise OSError(errno.ENAMETOOLONG, "the directories are nested too deeply")
    try:
        entry = os.stat(name, dir_fd=folder, follow_symlinks=False)
        # A bind mount within one file system shows in the table only. Where the table cannot be
        # read, the device tells the other mounts.
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
            raise OSError(errno.ENOTEMPTY, "something keeps writing into it", path) from e
        raise
    return all_gone
