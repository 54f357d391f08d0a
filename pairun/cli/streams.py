"""The standard streams, which may be closed or full; prints lines for people on standard error."""

from __future__ import annotations

import contextlib
import io
import os
import sys


def open_streams(*, lenient: bool) -> None:
    """Open /dev/null for each closed standard stream, so that no other file gets its number.

    Args:
        lenient: discard writes to a closed standard output; otherwise they fail, as with a closed
            file.
    """
    for fd, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is not None:
            continue
        flags = os.O_RDONLY if fd == 0 or (fd == 1 and not lenient) else os.O_WRONLY
        null = os.open(os.devnull, flags)
        if null != fd:
            os.dup2(null, fd)
            os.close(null)
        os.set_inheritable(fd, True)
        # open until this process ends
        stream = open(fd, "w" if fd else "r", encoding="utf-8", closefd=False)  # noqa: SIM115
        setattr(sys, name, stream)


def speak_everywhere() -> None:
    """Make standard output accept every character, in any locale.

    On a terminal, characters that it cannot show become escapes; files and pipes get UTF-8, as
    manifests and JSON require. Half of a surrogate pair, which foreign JSON may contain, becomes an
    escape that is valid in JSON.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        encoding = None if sys.stdout.isatty() else "utf-8"
        sys.stdout.reconfigure(encoding=encoding, errors="backslashreplace")


def unwritable(e: OSError) -> str:
    """The message for a standard output that cannot be written."""
    return f"standard output cannot be written: {e.strerror or e}"


def give_up_stdout() -> None:
    """Discard all further output: buffered output would fail again at exit."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.close(null)


def say(line: str) -> None:
    """Print one line on standard error; does nothing if it is closed."""
    # PID 1 imports this file only for its streams, and never calls this.
    from pairun.base.escapes import visible

    with contextlib.suppress(OSError):
        print(f"[pairun] {visible(line)}", file=sys.stderr, flush=True)
