"""The first process of an instance's namespaces: makes ``/usr/local/pai`` the instance's own.

Usage: ``python -m pairun.engines.enter VOLUME SCRATCH exec|supervise COMMAND…``. It is PID 1 of its
PID namespace. ``exec`` hands that on to the command; ``supervise`` keeps it, for a command that
expects to be an ordinary process, on which a signal works before it has said how.
"""

from __future__ import annotations

import os
import sys

from pairun.engines.kernel import bind, mount_tmpfs
from pairun.runtime.grace import Grace
from pairun.runtime.paths import DEFAULT_PAI_DIR
from pairun.runtime.supervisor import Supervisor, block_signals


def main(volume: str, scratch: str, how: str, command: list[str]) -> int:
    """Mount, then become or supervise the command.

    Args:
        volume: what `DEFAULT_PAI_DIR` is to show.
        scratch: an empty directory for a mount, where one is needed.
        how: ``exec`` or ``supervise``.
        command: the argv.
    """
    block_signals()
    show_volume(volume, scratch, DEFAULT_PAI_DIR)
    if how == "exec":
        # With the signals still blocked: one that comes before the command listens is not lost.
        os.execv(command[0], command)
    supervisor = Supervisor(Grace(0.0), lambda _: None)
    child = supervisor.start(command, os.environ)
    # How long it may take to end is the engine's business.
    return supervisor.wait(child, lambda: None)


def show_volume(volume: str, scratch: str, target: str) -> None:
    """Show the volume at ``target`` in this mount namespace; the host's own files stay as they are.

    Where the host has no such directory, its parent is covered by a copy of itself that has one:
    a file system in memory, into which every entry of the parent is bound.

    Raises:
        OSError: the kernel refuses.
    """
    if os.path.isdir(target):
        bind(volume, target)
        return
    parent, name = os.path.split(target)
    mount_tmpfs(scratch)
    for entry in os.scandir(parent):
        copy = os.path.join(scratch, entry.name)
        if entry.is_symlink():
            os.symlink(os.readlink(entry.path), copy)
        elif entry.is_dir():
            os.mkdir(copy)
            bind(entry.path, copy)
        elif entry.is_file():
            with open(copy, "x", encoding="ascii"):
                pass
            bind(entry.path, copy)
    os.mkdir(os.path.join(scratch, name))
    bind(volume, os.path.join(scratch, name))
    bind(scratch, parent)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]))
