"""Sends noteworthy records of an init phase as Events of the Pod, from a parallel process.

The phase writes records to a pipe and never waits: a slow API server loses an Event, not time.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import time
from collections.abc import Callable, Mapping
from typing import Any

from pairun.base.foreignjson import parse_record
from pairun.base.paths import journal_file
from pairun.base.signals import block_stop_signals
from pairun.kube.events import Note
from pairun.module import format_duration
from pairun.net.podevents import can_send, send_event
from pairun.secrets.vault import Vault
from pairun.volume.door import Door
from pairun.volume.journal import Journal

_CALL_S = 5.0
"""The timeout of one request, in seconds."""

END_S = 1.0
"""Seconds for which the phase's end waits for pending Events."""

LATE_S = 60.0
"""Seconds after which a task that a retry fixed is reported, and a gang counts as incomplete."""

REPEAT_S = 600.0
"""Seconds after which an incomplete gang is reported again."""

MOST = 10
"""The maximum number of Events of a phase."""

_POLL_S = 0.01
_READ = ("attempt_begin", "attempt_end", "output", "task_end")


class Noteworthy:
    """Reads the records of a phase, and selects those that deserve an Event.

    Args:
        clock: returns seconds; `time.monotonic`.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._sent = 0
        self._barrier = self._gang = ""
        self._due: float | None = None
        self._last_failure: dict[str, str] = {}

    def note_of(self, record: Mapping[str, Any]) -> Note | None:
        """The Event for a record, or None."""
        kind, task = record.get("type"), str(record.get("task"))
        if kind == "attempt_begin" and record.get("module") == "barrier" and self._due is None:
            self._barrier, self._due = task, self._clock() + LATE_S
        elif kind == "output" and task == self._barrier:
            self._gang = str(record.get("line"))
        elif kind == "attempt_end" and record.get("outcome") == "failed":
            self._last_failure[task] = str(record.get("message"))
        elif kind == "task_end":
            if task == self._barrier:
                self._due = None
            return self._counted(self._of_end(record, task))
        return None

    def due_s(self) -> float | None:
        """Seconds until `overdue` has an Event; None if it waits for nothing."""
        return None if self._due is None else max(0.0, self._due - self._clock())

    def overdue(self) -> Note | None:
        """The Event about a gang that has long been incomplete; the next one is due later."""
        if self._due is None or self._clock() < self._due:
            return None
        self._due = self._clock() + REPEAT_S
        missing = self._gang or "no instance has an address yet"
        return self._counted(Note("GangIncomplete", f"waiting for the gang: {missing}", True))

    def _of_end(self, record: Mapping[str, Any], task: str) -> Note | None:
        outcome, seconds = record.get("outcome"), float(record.get("seconds") or 0)
        if outcome == "failed":
            hint = f"; {record['hint']}" if record.get("hint") else ""
            return Note("TaskFailed", f"{task} failed: {record.get('message')}{hint}", True)
        attempts = int(record.get("attempts") or 0)
        if attempts > 1 and seconds >= LATE_S and outcome in ("ok", "changed"):
            message = f"{task} succeeded at attempt {attempts} after {format_duration(seconds)}"
            return Note("TaskHealed", f"{message}; before: {self._last_failure.get(task)}", False)
        return None

    def _counted(self, note: Note | None) -> Note | None:
        if note is None or self._sent >= MOST:
            return None
        self._sent += 1
        return note


class EventSender:
    """The process that sends Events; not started if the container cannot reach the API server."""

    def __init__(self, env: Mapping[str, str], pai_dir: str, vault: Vault) -> None:
        self._env, self._pai_dir, self._vault = env, pai_dir, vault
        self._pid: int | None = None
        self._pipe = -1
        if can_send(env):
            with contextlib.suppress(OSError):
                self._start()

    def observe(self, record: Mapping[str, Any]) -> None:
        """Take a record of the phase; it is lost if the pipe is full."""
        if self._pid is None or record.get("type") not in _READ:
            return
        kept = {k: v for k, v in record.items() if k != "output"}
        with contextlib.suppress(OSError):
            os.write(self._pipe, json.dumps(self._vault.record(kept)).encode() + b"\n")

    def end(self) -> None:
        """Wait briefly for pending Events; then kill what still runs."""
        if self._pid is None:
            return
        os.close(self._pipe)
        until = time.monotonic() + END_S
        # Reaped last: until then its number, and its group's, cannot belong to another process.
        how = os.WEXITED | os.WNOHANG | os.WNOWAIT
        with contextlib.suppress(ChildProcessError):
            while os.waitid(os.P_PID, self._pid, how) is None and time.monotonic() < until:
                time.sleep(_POLL_S)
            os.kill(self._pid, signal.SIGKILL)
            with contextlib.suppress(ProcessLookupError):  # it has not begun its group yet
                os.killpg(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
        self._pid = None

    def _start(self) -> None:
        read, write = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(write, False)
        pid = os.fork()
        if pid:
            os.close(read)
            self._pid, self._pipe = pid, write
            return
        try:
            os.setsid()
            block_stop_signals()
            os.dup2(read, 3)
            # Readers of the phase's streams wait for their end.
            os.closerange(4, 65536)
            for fd in range(3):
                os.dup2(os.open(os.devnull, os.O_RDWR), fd)
            _send_notes(3, self._env, self._pai_dir, self._vault)
        finally:
            os._exit(0)


def _send_notes(fd: int, env: Mapping[str, str], pai_dir: str, vault: Vault) -> None:
    """Send Events until the phase has ended, or the API server refuses.

    Args:
        fd: the source of the records.
    """
    noteworthy, rest = Noteworthy(), b""
    while True:
        lines: list[bytes] = []
        if select.select([fd], [], [], noteworthy.due_s())[0]:
            if not (data := os.read(fd, 65536)):
                return
            *lines, rest = (rest + data).split(b"\n")
        notes = [noteworthy.note_of(parse_record(line) or {}) for line in lines]
        for note in filter(None, (*notes, noteworthy.overdue())):
            path = journal_file(pai_dir, env)
            journal = Journal(Door(pai_dir), path, vault.record, lambda _: None)
            is_accepted = send_event(note, env, _CALL_S, journal)
            journal.close()
            if not is_accepted:
                return
