"""Makes the namespaces of an instance, with the instance's own ``/usr/local/pai``.

Usage: ``python -m pairun.engines.local.enter root|user VOLUME SCRATCH exec|supervise COMMAND…``.
It uses two processes: one waits outside, one is PID 1 inside. With ``exec`` the command becomes
PID 1. With ``supervise`` pairun stays PID 1, for a command that needs the default action of
signals, which PID 1 does not have (pid_namespaces(7)).
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

from pairun.base.grace import Grace
from pairun.base.paths import DEFAULT_PAI_DIR
from pairun.base.signals import GRACE_SIGNALS
from pairun.base.system import MS_BIND, PR_SET_PDEATHSIG, mount, prctl
from pairun.runtime.supervisor import Supervisor, block_signals


def main(who: str, volume: str, scratch: str, how: str, command: list[str]) -> int:
    """Make the namespaces, run the command in them, and return its exit code.

    Args:
        who: ``user`` to make a user namespace, ``root`` if none is needed.
        volume: what `DEFAULT_PAI_DIR` shows.
        scratch: an empty directory for a mount.
        how: ``exec`` or ``supervise``.
    """
    block_signals()
    try:
        separate(user=who == "user")
        alive, ours = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(ours)
            _inside(alive, volume, scratch, how, command)
        # a signal from before the fork is pending here, and a child inherits none (fork(2))
        for number in signal.sigpending() & GRACE_SIGNALS:
            os.kill(child, number)
    except OSError as e:
        print(f"{e.filename}: {e.strerror}", file=sys.stderr)
        return 1
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return code if code >= 0 else 128 - code


def _inside(alive: int, volume: str, scratch: str, how: str, command: list[str]) -> None:
    """Run PID 1; never returns."""
    code = 1
    try:
        # When PID 1 ends, the kernel kills all other processes of a PID namespace.
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        os.set_blocking(alive, False)
        if not _is_open(alive):
            return
        mount_new("proc", "/proc")
        show_volume(volume, scratch, DEFAULT_PAI_DIR)
        if how == "exec":
            # Signals stay blocked until the command handles them, so that none is lost.
            os.execv(command[0], command)  # noqa: S606 - it is what this process is for
        supervisor = Supervisor(Grace(0.0), lambda _: None)
        # The engine enforces the grace time.
        code = supervisor.wait(supervisor.start(command, os.environ), lambda: None)
    except OSError as e:
        os.write(2, os.fsencode(f"{e.filename}: {e.strerror}\n"))
    finally:
        os._exit(code)


def _is_open(pipe: int) -> bool:
    """Whether the process at the other end of the pipe is alive."""
    try:
        os.read(pipe, 1)
    except BlockingIOError:
        return True
    return False


def show_volume(volume: str, scratch: str, target: str) -> None:
    """Show the volume at ``target`` in this mount namespace; the host's files do not change.

    If the host has no such directory, cover its parent with a file system in memory. That contains
    the new directory, and every entry of the parent is bound into it.

    Raises:
        OSError: the kernel refuses a mount.
    """
    if os.path.isdir(target):
        bind(volume, target)
        return
    parent, name = os.path.split(target)
    mount_new("tmpfs", scratch)
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


_MS_REC = 0x4000
MS_PRIVATE = 0x40000
CLONE_NEWNS = 0x20000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000

_libc = ctypes.CDLL(None, use_errno=True)


def separate(*, user: bool) -> None:
    """Move this process to a new mount namespace, and its next child to a new PID namespace.

    Args:
        user: also make a user namespace, in which this user is root.

    Raises:
        OSError: the kernel refuses.
    """
    uid, gid = os.geteuid(), os.getegid()
    flags = CLONE_NEWNS | CLONE_NEWPID | (CLONE_NEWUSER if user else 0)
    if _libc.unshare(flags) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), "unshare")
    if user:
        # user_namespaces(7): otherwise only root may map groups
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"0 {uid} 1")
        _write("/proc/self/gid_map", f"0 {gid} 1")
    # mounts made here must not be visible outside
    mount("none", "/", None, _MS_REC | MS_PRIVATE, None)


def bind(source: str, target: str) -> None:
    """Show a path, with the mounts below it, at another path.

    Raises:
        OSError: the kernel refuses.
    """
    mount(source, target, None, MS_BIND | _MS_REC, None)


def mount_new(kind: str, target: str) -> None:
    """Mount a new file system without a device: ``tmpfs``, ``proc``.

    Raises:
        OSError: the kernel refuses.
    """
    mount(kind, target, kind, 0, None)


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as f:
        f.write(text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4], sys.argv[5:]))
