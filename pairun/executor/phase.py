"""What both phases share: events go to the journal and to people, signals end in handlers."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from pairun.base.durations import parse_seconds
from pairun.base.grace import VARIABLE
from pairun.base.journal import Emit, Journal
from pairun.base.signals import block_stop_signals
from pairun.executor.output import OutputLines
from pairun.executor.run import PhaseOutcome
from pairun.plan import Plan
from pairun.secrets.vault import Vault


def with_grace(plan: Plan, env: Mapping[str, str]) -> Plan:
    """The plan with the grace time that the platform gives this Pod, where it tells."""
    seconds = parse_seconds(env.get(VARIABLE, ""))
    return plan if seconds is None else attrs.evolve(plan, grace_s=seconds)


class PhaseEvents:
    """Sends events to a journal and to people, and frames the phase.

    Args:
        plan: what runs.
        journal: path of the journal.
        people: takes every event for display.
        vault: what no sink may hold.
        say: prints a line for people.
    """

    def __init__(
        self,
        plan: Plan,
        journal: str,
        people: Emit,
        vault: Vault,
        say: Callable[[str], None],
    ) -> None:
        self._plan = plan
        self._journal = Journal(journal, vault.record, say)
        self._people = people
        self._began = time.monotonic()

    def emit(self, event: dict[str, Any]) -> None:
        """Send an event to every sink."""
        self._journal(event)
        self._people(event)

    def begin(self) -> None:
        """Say that the phase begins."""
        self._began = time.monotonic()
        self.emit(
            {
                "type": "phase_begin", "phase": self._plan.phase, "pairun": self._plan.pairun,
                "tasks": sum(1 for _ in self._plan.tasks()),
            }
        )  # fmt: skip

    def end(self, outcome: PhaseOutcome) -> None:
        """Say how it ended."""
        self.emit(
            {
                "type": "phase_end", "phase": self._plan.phase, "outcome": outcome.event,
                "exit_code": outcome.exit_code, "message": outcome.message,
                "seconds": round(time.monotonic() - self._began, 4),
            }
        )  # fmt: skip
        self._journal.close()


def pump_in_background(lingering: list[OutputLines]) -> None:
    """Read on what background processes of tasks print, in a process of its own.

    A task may leave a server running. When the executor ends, nobody would read its output any
    more, and its next line would kill it (SIGPIPE). The child is left to PID 1, and ends with the
    last writer: a signal that ends the writer must not cut off its last words.
    """
    for lines in lingering:
        lines.drain()
    if not any(lines.open for lines in lingering) or os.fork() != 0:
        return
    try:
        os.setsid()
        block_stop_signals()
        while still_open := {lines.fd: lines for lines in lingering if lines.open}:
            poll = select.poll()
            for fd in still_open:
                poll.register(fd, select.POLLIN)
            for fd, _ in poll.poll():
                still_open[fd].read()
    finally:
        os._exit(0)
