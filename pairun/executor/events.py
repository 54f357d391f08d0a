"""The events of a phase: they go to the journal and to people."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from pairun.base.journal import Emit, Journal
from pairun.executor.phase import PhaseOutcome
from pairun.plan import Plan
from pairun.secrets.vault import Vault


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
