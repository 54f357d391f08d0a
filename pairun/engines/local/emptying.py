"""Removes what a job left: at any depth, through no symbolic link, whatever its permissions."""

from __future__ import annotations

import os
import stat
import uuid

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def empty(folder: str) -> None:
    """Remove everything in a folder.

    A directory is emptied by moving its directories up into the folder, so that no path grows long
    and a run that is interrupted has lost nothing but part of the rubbish.

    Args:
        folder: on one file system with all that is below it.

    Raises:
        OSError: something cannot be removed.
    """
    top = os.open(folder, _DIRECTORY)
    try:
        while names := os.listdir(top):
            for name in names:
                _take_apart(top, name)
    finally:
        os.close(top)


def _take_apart(top: int, name: str) -> None:
    if not _is_directory(top, name):
        os.unlink(name, dir_fd=top)
        return
    # A job may leave directories that forbid even their owner to read or to write.
    os.chmod(name, 0o700, dir_fd=top)
    inner = os.open(name, _DIRECTORY, dir_fd=top)
    try:
        for entry in os.listdir(inner):
            if _is_directory(inner, entry):
                os.chmod(entry, 0o700, dir_fd=inner)
                os.rename(entry, str(uuid.uuid4()), src_dir_fd=inner, dst_dir_fd=top)
            else:
                os.unlink(entry, dir_fd=inner)
    finally:
        os.close(inner)
    os.rmdir(name, dir_fd=top)


def _is_directory(folder: int, name: str) -> bool:
    return stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
