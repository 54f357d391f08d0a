"""Removes a job's files at any depth, whatever their permissions; follows no symbolic link."""

from __future__ import annotations

import os
import stat
import uuid

from pairun.handover.opening import LISTED, open_folder


def empty(folder: str) -> None:
    """Remove everything in a folder.

    It moves nested directories up into the folder, so that no path grows long. An interruption
    loses only files that would have been removed.

    Args:
        folder: the folder; everything below it is on the same file system.

    Raises:
        OSError: a file cannot be removed.
    """
    top = open_folder(None, folder, folder, LISTED)
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
    inner = opened(top, name)
    try:
        for entry in os.listdir(inner):
            if _is_directory(inner, entry):
                # rename(2) changes a directory's `..` entry, so it needs write permission on it.
                os.close(opened(inner, entry))
                os.rename(entry, str(uuid.uuid4()), src_dir_fd=inner, dst_dir_fd=top)
            else:
                os.unlink(entry, dir_fd=inner)
    finally:
        os.close(inner)
    os.rmdir(name, dir_fd=top)


def opened(folder: int, name: str) -> int:
    """Open a directory in an open one, and give its owner every permission on it.

    A job may leave directories that even their owner cannot read or write. One of its processes may
    still run and replace the directory by a link: that is an error; the target does not change.

    Raises:
        OSError: it is not a directory, or cannot be opened.
    """
    # O_PATH needs no permission; chmod(2) by name would follow a link.
    fd = open_folder(folder, name, name)
    try:
        os.chmod(f"/proc/self/fd/{fd}", 0o700)
        return os.open(".", LISTED, dir_fd=fd)
    finally:
        os.close(fd)


def _is_directory(folder: int, name: str) -> bool:
    return stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
