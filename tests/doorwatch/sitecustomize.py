"""Watches a pairun process: every path of the shared volume must be opened by the door.

Python imports this file at start, where ``PYTHONPATH`` names its folder. An audit hook sees every
call that opens, makes, lists, moves or removes a path, and cannot be taken away again (PEP 578).
The door alone may do that, for modules too. Every other call is written to a report, with the lines
that led to it.
"""

from __future__ import annotations

import itertools
import os
import sys
from types import FrameType

VOLUME = os.path.realpath(
    os.environ.get("DOOR_WATCH_VOLUME") or os.environ.get("PAIRUN_PAI_DIR") or "/usr/local/pai"
)
REPORT = os.environ.get("DOOR_WATCH_REPORT", "")
DOORS = ("base/folder.py", "volume/door.py")
EVENTS = {
    "open": (0,), "os.mkdir": (0,), "os.rmdir": (0,), "os.remove": (0,), "os.rename": (0, 1),
    "os.link": (0, 1), "os.symlink": (1,), "os.truncate": (0,), "os.listdir": (0,),
    "os.scandir": (0,), "os.chmod": (0,), "os.chown": (0,), "os.utime": (0,),
}  # fmt: skip
"""Each event's arguments that are paths (docs.python.org, "Audit events table")."""


def is_on_volume(path: object) -> bool:
    """Whether a path leads to the volume, through links too; a descriptor is somebody's already."""
    if not isinstance(path, str | bytes | os.PathLike):
        return False
    folder, name = os.path.split(os.path.abspath(os.fsdecode(path)))
    real = os.path.join(os.path.realpath(folder), name)
    return real == VOLUME or real.startswith(VOLUME + "/")


def is_allowed(frame: FrameType | None) -> bool:
    """Whether the door makes the call."""
    while frame is not None and frame.f_code.co_filename.endswith(("/os.py", "<frozen os>")):
        frame = frame.f_back
    return frame is not None and frame.f_code.co_filename.endswith(DOORS)


def watch(event: str, args: tuple[object, ...]) -> None:
    """The audit hook."""
    # sys._getframe is audited, too
    if event in EVENTS:
        check(event, args, sys._getframe().f_back)


def check(event: str, args: tuple[object, ...], frame: FrameType | None) -> None:
    """Report a call that is made beside the door.

    Args:
        event: what is audited.
        args: what it is about.
        frame: the caller.
    """
    paths = [args[n] for n in EVENTS[event]]
    flags = args[2] if event == "open" else 0
    if isinstance(flags, int) and flags & os.O_DIRECTORY and not flags & os.O_NOFOLLOW:
        # It leads to what a link at its end points to; a descriptor's name is no link of others.
        paths = [
            os.path.realpath(p) if isinstance(p, str) and not p.startswith("/proc/self/fd/") else p
            for p in paths
        ]
    if is_allowed(frame) or not any(map(is_on_volume, paths)):
        return
    lines: list[str] = []
    while frame is not None and len(lines) < 6:
        lines.append(f"  {frame.f_code.co_filename}:{frame.f_lineno}")
        frame = frame.f_back
    text = "\n".join([f"{event} {args!r}", *lines, ""])
    fd = os.open(REPORT, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    os.write(fd, text.encode("utf-8", "replace"))
    os.close(fd)


def is_pairun(argv: list[str]) -> bool:
    """Whether a process runs pairun: a job's own Python may open what it likes."""
    return any(
        (a == "-m" and b.startswith("pairun")) or (a == "-c" and "pairun" in b)
        for a, b in itertools.pairwise(argv)
    )


if REPORT and is_pairun(sys.orig_argv):
    sys.addaudithook(watch)
