"""The Pod's log directory as init prepares it: writable for every user, without old files."""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Mapping

from pairun.base.paths import JOURNAL, USER_LOGS, log_dir
from pairun.volume.door import Door

INIT_LOG = "init.log"
"""The init phase's output; appended to over restarts."""

_STAYS = (INIT_LOG, JOURNAL)
_EARLIER = re.compile(r"prelog_(\d{1,9})")


def prepare_logs(door: Door, env: Mapping[str, str]) -> None:
    """Create the Pod's log directory; move files of an earlier run of the Pod to ``prelog_<n>``.

    The names are those that OpenPAI's log manager knows. The journal and the folders of the
    command's output are not moved, because they cover all runs.

    Raises:
        OSError: it cannot be created, or another user owns it.
    """
    folder = log_dir(door.root, env)
    door.make_folder(folder, 0o777)
    found = door.stat(folder)
    if found is not None and stat.S_IMODE(found.st_mode) & 0o777 != 0o777:
        # The user's container may run as any user, and writes its logs there.
        door.set_mode(folder, 0o777)
    _put_aside(door, folder)
    _open_journal(door, os.path.join(folder, JOURNAL))


def _open_journal(door: Door, path: str) -> None:
    """Let both containers append to the journal, whatever their users."""
    try:
        fd = door.open_append(path, 0o666)
    except OSError:
        # Not a regular file: only records are lost, the job continues.
        return
    try:
        found = os.fstat(fd)
        if found.st_nlink == 1 and found.st_uid == os.geteuid():
            os.fchmod(fd, 0o666)
    finally:
        os.close(fd)


def _put_aside(door: Door, folder: str) -> None:
    names = door.names(folder)
    earlier = [int(m[1]) for n in names if (m := _EARLIER.fullmatch(n))]
    old = [n for n in names if n not in _STAYS and not _EARLIER.fullmatch(n)]
    old = [n for n in old if not (n in USER_LOGS and door.is_folder(os.path.join(folder, n)))]
    if not old:
        return
    target = os.path.join(folder, f"prelog_{max(earlier, default=0) + 1}")
    door.make_folder(target)
    for name in old:
        # A mount point or an entry that vanished cannot be moved, which is harmless.
        with contextlib.suppress(OSError):
            door.rename(os.path.join(folder, name), os.path.join(target, name))
