"""The sender of a signal, as the kernel reports it (sigaction(2): si_code, si_pid, si_uid)."""

from __future__ import annotations

import contextlib
import signal
from typing import Any, NamedTuple

MAX_SHOWN = 120
"""How many characters of a sender's command line are shown."""


class Sender(NamedTuple):
    """The sender of a signal.

    Attributes:
        words: for people, after "SIGTERM".
        fields: for the journal: ``sender`` (outside, process or kernel); for a process also its
            ``pid``, ``uid`` and, if it still runs, its ``command``.
    """

    words: str
    fields: dict[str, Any]

    @property
    def is_outside(self) -> bool:
        """Whether it is in another PID namespace: the platform, not the job."""
        return bool(self.fields["sender"] == "outside")


def sender_of(info: signal.struct_siginfo) -> Sender:
    """Describe the sender of a signal.

    A sender in another PID namespace, such as the container's engine, has the PID 0.
    """
    if info.si_code > 0:
        return Sender("from the kernel", {"sender": "kernel"})
    if info.si_pid == 0:
        return Sender("from outside this container", {"sender": "outside", "uid": info.si_uid})
    fields = {"sender": "process", "pid": info.si_pid, "uid": info.si_uid}
    command = command_line(info.si_pid)
    if command is None:
        return Sender(f"from process {info.si_pid} (command unknown)", fields)
    return Sender(f"from process {info.si_pid} ({command})", {**fields, "command": command})


def command_line(pid: int) -> str | None:
    """The start of a process's command line as one printable line; None if it has none."""
    cmdline = b""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as f:
        cmdline = f.read(4096)
    text = cmdline.rstrip(b"\0").replace(b"\0", b" ").decode("utf-8", "replace")
    text = "".join(c if c.isprintable() else "?" for c in text)
    return (text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 3] + "...") or None
