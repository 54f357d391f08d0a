"""Starts and stops commands, and explains why one cannot be started."""

from __future__ import annotations

import contextlib
import errno
import os
import subprocess

from pairun.module import Failure, Permanent, Transient

_END_S = 0.5
"""Seconds between TERM and KILL of a command."""


def end(process: subprocess.Popen[bytes]) -> None:
    """Stop the command; its child processes are stopped with the attempt's group."""
    for send in (process.terminate, process.kill):
        send()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_END_S)
            return


def not_started(error: OSError | ValueError, name: str, cwd: str | None) -> Failure:
    """The failure for a command that cannot be started."""
    code = error.errno if isinstance(error, OSError) else None
    if code in (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE):
        return Transient(f"cannot start {name}: {os.strerror(code)}")
    if cwd is not None and not os.path.isdir(cwd):
        return Permanent(f"cannot run {name} in {cwd}: there is no such directory", fault="user")
    sentences = {
        errno.ENOENT: f"the program {name} does not exist here",
        errno.EACCES: f"the program {name} is not executable",
        errno.ENOEXEC: f"this machine cannot execute {name}",
        errno.E2BIG: f"the arguments and the environment of {name} are too long",
    }
    hints = {
        errno.ENOENT: "install it in the image, or correct its name",
        errno.EACCES: "make it executable (chmod +x)",
        errno.ENOEXEC: "add a `#!` line to a script, or use a program for this architecture",
        errno.E2BIG: "pass long texts in a file",
    }
    if code == errno.ENOENT and os.path.sep in name and os.path.exists(name):
        return Permanent(
            f"the program {name} exists, but its interpreter does not",
            fault="user",
            hint="check the first line of the script, or the C library of the program",
        )
    return Permanent(
        sentences.get(code or 0, f"cannot execute {name}: {error}"),
        fault="user",
        hint=hints.get(code or 0),
    )
