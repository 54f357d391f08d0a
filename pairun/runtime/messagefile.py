"""The file of the termination message: its path, its size, and how to write it."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Mapping

from pairun.base.folder import open_regular
from pairun.runtime.termination import DEFAULT_BUDGET, Summary, message
from pairun.volume.door import Door

PATH_VARIABLE = "PAIRUN_TERMINATION_LOG"
BUDGET_VARIABLE = "PAIRUN_TERMINATION_BYTES"
MIN_BUDGET = 256
OPENPAI_MESSAGE = "/tmp/pai-termination-log"
KUBERNETES_MESSAGE = "/dev/termination-log"


def short_message(exit_code: int, user_code: int, budget: int) -> str:
    """The message that is written first, before logs are read."""
    return message(Summary(exit_code=exit_code, user_exit_code=user_code), budget)


def write_message(door: Door, paths: Iterable[str], text: str) -> list[str]:
    """Write a termination message.

    Replaces a file on the volume. Overwrites any other file in place, because it may be a mount.

    Returns:
        A line for each path that could not be written, with the reason.
    """
    complaints = []
    for path in paths:
        try:
            if path in door:
                door.write(path, text.encode())
            else:
                _write_in_place(path, text.encode())
        except OSError as e:
            complaints.append(f"the termination message cannot be written to {path}: {e.strerror}")
    return complaints


def _write_in_place(path: str, data: bytes) -> None:
    """Overwrite a file in place; on a full disk its old content stays."""
    fd = open_regular(path, os.O_WRONLY | os.O_CREAT)
    try:
        _reserve(fd, len(data))
        os.pwrite(fd, data, 0)
        os.ftruncate(fd, len(data))
    finally:
        os.close(fd)


def _reserve(fd: int, size: int) -> None:
    """Reserve the space for the first bytes of a file.

    Raises:
        OSError: the disk is full.
    """
    try:
        os.posix_fallocate(fd, 0, size)
    except OSError as e:
        # not supported by every file system (posix_fallocate(3))
        if e.errno not in (errno.EOPNOTSUPP, errno.EINVAL, errno.ENODEV, errno.ENOSYS):
            raise


def message_paths(env: Mapping[str, str], log_folder: str) -> list[str]:
    """The paths of the termination message: the one that the platform reads, and one in the logs.

    Args:
        env: ``PAIRUN_TERMINATION_LOG`` names the platform's file; empty means none. Without it,
            an existing file of OpenPAI or Kubernetes is used, and OpenPAI's in a Framework.
        log_folder: the folder of this container's logs.
    """
    path = env.get(PATH_VARIABLE)
    if path is None:
        existing = (p for p in (OPENPAI_MESSAGE, KUBERNETES_MESSAGE) if os.path.exists(p))
        default = OPENPAI_MESSAGE if env.get("FC_FRAMEWORK_NAME") else ""
        path = next(existing, default)
    logged = os.path.join(log_folder, os.path.basename(OPENPAI_MESSAGE))
    # PID 1 has left the working directory.
    return [os.path.join(env.get("PAI_WORK_DIR", "/"), path), logged] if path else [logged]


def budget_of(env: Mapping[str, str]) -> int:
    """The largest termination message in bytes: ``PAIRUN_TERMINATION_BYTES``, 256 to 4096."""
    text = env.get(BUDGET_VARIABLE, "")
    return min(max(int(text), MIN_BUDGET), DEFAULT_BUDGET) if text.isdecimal() else DEFAULT_BUDGET
