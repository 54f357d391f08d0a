"""The Pod's log directory as init prepares it: writable for any user, without an earlier run's files."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping

from pairun.base.paths import JOURNAL, log_dir

INIT_LOG = "init.log"
"""What the init phase prints; it goes on over restarts."""

_STAYS = (INIT_LOG, JOURNAL)
_EARLIER = re.compile(r"prelog_(\d{1,9})")


def prepare_logs(pai_dir: str, env: Mapping[str, str]) -> None:
    """Make the Pod's log directory; what an earlier run of the same Pod left moves to ``prelog_<n>``.

    The names are those that OpenPAI's log manager knows. The journal stays, as it is a record of all
    runs.

    Args:
        pai_dir: the shared volume.
        env: the environment of the init container.

    Raises:
        OSError: it cannot be made, or is not ours to open to others.
    """
    path = log_dir(pai_dir, env)
    os.makedirs(path, exist_ok=True)
    # The user's container wrote there: nothing is followed from here on.
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if stat.S_IMODE(os.fstat(folder).st_mode) & 0o777 != 0o777:
            # The user's container may run as anybody, and writes its logs there.
            os.fchmod(folder, 0o777)
        _put_aside(folder)
        _open_journal(folder)
    finally:
        os.close(folder)


def _open_journal(folder: int) -> None:
    """Let both containers append to the journal, whoever they run as."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        fd = os.open(JOURNAL, flags, 0o666, dir_fd=folder)
    except OSError:
        # Something else stands there: a record is lost, no job.
        return
    try:
        found = os.fstat(fd)
        if stat.S_ISREG(found.st_mode) and found.st_nlink == 1 and found.st_uid == os.geteuid():
            os.fchmod(fd, 0o666)
    finally:
        os.close(fd)


def _put_aside(folder: int) -> None:
    names = os.listdir(folder)
    earlier = [int(m[1]) for n in names if (m := _EARLIER.fullmatch(n))]
    old = [n for n in names if n not in _STAYS and not _EARLIER.fullmatch(n)]
    if not old:
        return
    target = f"prelog_{max(earlier, default=0) + 1}"
    os.mkdir(target, 0o755, dir_fd=folder)
    for name in old:
        try:
            os.rename(name, f"{target}/{name}", src_dir_fd=folder, dst_dir_fd=folder)
        except OSError:
            # Of a mount point, or of what vanished meanwhile, nothing is expected.
            continue
