"""Sends what is noteworthy of an init phase as Events of the Pod, from a process beside the phase.

The phase writes records to a pipe and never waits: a slow or silent API server costs an Event. What
was sent, and why something was not, is in the journal and nowhere else.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import time
from collections.abc import Mapping
from typing import Any

from pairun.base.paths import journal_file
from pairun.base.signals import block_stop_signals
from pairun.handover.door import Door
from pairun.handover.journal import Journal
from pairun.init.noteworthy import Noteworthy
from pairun.kube.events import Note, own_pod
from pairun.module import Failure
from pairun.net.apicredentials import access_of_pod
from pairun.secrets.vault import Vault

CALL_S = 5.0
"""How long one request may take."""

END_S = 1.0
"""How long the end of the phase waits for Events that are on their way."""

_POLL_S = 0.01
_READ = ("attempt_begin", "attempt_end", "output", "task_end")


class EventSender:
    """The process that sends Events; none is started where the container cannot ask the API server.

    Args:
        env: the environment of the init container.
        pai_dir: path of the shared volume.
        vault: masks every message.
    """

    def __init__(self, env: Mapping[str, str], pai_dir: str, vault: Vault) -> None:
        self._env, self._pai_dir, self._vault = env, pai_dir, vault
        self._pid: int | None = None
        self._pipe = -1
        if _may_send(env):
            with contextlib.suppress(OSError):
                self._start()

    def observe(self, record: Mapping[str, Any]) -> None:
        """Take a record of the phase; one that the pipe has no room for is lost."""
        if self._pid is None or record.get("type") not in _READ:
            return
        kept = {k: v for k, v in record.items() if k != "output"}
        with contextlib.suppress(OSError):
            os.write(self._pipe, json.dumps(self._vault.record(kept)).encode() + b"\n")

    def end(self) -> None:
        """Wait shortly for what is on its way."""
        if self._pid is None:
            return
        os.close(self._pipe)
        until = time.monotonic() + END_S
        while time.monotonic() < until:
            with contextlib.suppress(ChildProcessError):
                if os.waitpid(self._pid, os.WNOHANG)[0] == 0:
                    time.sleep(_POLL_S)
                    continue
            break
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
            # The phase's own streams have readers that wait for their end.
            os.closerange(4, 65536)
            for fd in range(3):
                os.dup2(os.open(os.devnull, os.O_RDWR), fd)
            _Sending(3, self._env, self._pai_dir, self._vault).run()
        finally:
            os._exit(0)


class _Sending:
    """The process's work.

    Args:
        fd: the records come from there.
        env: as for `EventSender`, as are the others.
    """

    def __init__(self, fd: int, env: Mapping[str, str], pai_dir: str, vault: Vault) -> None:
        self._fd, self._env, self._pai_dir, self._vault = fd, env, pai_dir, vault
        self._noteworthy = Noteworthy()
        self._is_refused = False

    def run(self) -> None:
        """Send until the phase has ended, or the API server refuses."""
        rest = b""
        while not self._is_refused:
            if select.select([self._fd], [], [], self._noteworthy.due_s())[0]:
                if not (data := os.read(self._fd, 65536)):
                    return
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    self._send(self._noteworthy.note_of(json.loads(line)))
            self._send(self._noteworthy.overdue())

    def _send(self, note: Note | None) -> None:
        if note is None or self._is_refused:
            return
        # Imported here: only this process needs an HTTP client, and only for what is noteworthy.
        from pairun.net.podevents import send_event

        sent = send_event(note, self._env, CALL_S)
        self._is_refused = sent.is_refused
        path = journal_file(self._pai_dir, self._env)
        journal = Journal(Door(self._pai_dir), path, self._vault.record, lambda _: None)
        failed = {} if sent.why_not is None else {"because": sent.why_not}
        journal({"type": "event", "reason": note.reason, "message": note.message, **failed})
        journal.close()


def _may_send(env: Mapping[str, str]) -> bool:
    """Whether this container has what a request needs: the Pod's name, and a way to the server."""
    try:
        access_of_pod(env)
    except Failure:
        return False
    return own_pod(env) is not None
