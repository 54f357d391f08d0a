"""The events of a phase: they go to the journal and to people."""

from __future__ import annotations

import time
from typing import Any

from pairun.executor.phase import PhaseOutcome
from pairun.handover.journal import Emit, Journal
from pairun.plan import Plan


class PhaseEvents:
    """Sends events to a journal and to people, and frames the phase.

    Args:
        plan: what runs.
        journal: takes every event that is kept.
        people: takes every event for display.
    """

    def __init__(
        self,
        plan: Plan,
        journal: Journal,
        people: Emit,
    ) -> None:
        self._plan = plan
        self._journal = journal
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
