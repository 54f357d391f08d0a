"""Who sent a signal, as far as the kernel tells (sigaction(2): si_code, si_pid, si_uid)."""

from __future__ import annotations

import contextlib
import signal
from typing import Any, NamedTuple

MAX_SHOWN = 120
"""How much of a sender's command line is shown."""


class Sender(NamedTuple):
    """Where a signal came from.

    Attributes:
        words: for people, to be read after "SIGTERM".
        fields: for the journal: ``sender`` (outside, process or kernel), and of a process its
            ``pid``, ``uid`` and, while it lives, its ``command``.
    """

    words: str
    fields: dict[str, Any]

    @property
    def is_outside(self) -> bool:
        """Whether it is in another PID namespace: the platform, not the job."""
        return bool(self.fields["sender"] == "outside")


def sender_of(info: signal.struct_siginfo) -> Sender:
    """The sender of a signal that was taken.

    A sender of another PID namespace has the number 0 here: the container's engine, which stops
    a container from outside. Everybody inside has a number of their own.
    """
    if info.si_code > 0:
        return Sender("from the kernel", {"sender": "kernel"})
    if info.si_pid == 0:
        return Sender("from outside this container", {"sender": "outside", "uid": info.si_uid})
    fields = {"sender": "process", "pid": info.si_pid, "uid": info.si_uid}
    command = command_line(info.si_pid)
    if command is None:
        return Sender(f"from process {info.si_pid}, of which no more is known", fields)
    return Sender(f"from process {info.si_pid} ({command})", {**fields, "command": command})


def command_line(pid: int) -> str | None:
    """The start of a process's command line as one printable line, or None where there is none."""
    found = b""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as f:
        found = f.read(4096)
    text = found.rstrip(b"\0").replace(b"\0", b" ").decode("utf-8", "replace")
    text = "".join(c if c.isprintable() else "?" for c in text)
    return (text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 3] + "...") or None
