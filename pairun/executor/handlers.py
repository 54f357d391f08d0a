"""Exit handlers: which of them run, in which order, and in which time.

The grace time is cut four times. What a stop signal cancels has a quarter of it between TERM and
KILL. After four fifths all handlers are over. Each handler has an equal share of the time that is
left when its turn comes. Of a share, a fifth (1 s at most) is reserved to stop the handler.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

from pairun.executor.limits import TERM_WAIT_S
from pairun.plan import Event, Task
from pairun.secrets.vault import Vault

HANDLER_DEADLINE_S = 300.0
"""How long an exit handler may take where neither its author nor a grace time limits it."""

GRACE_SHARE = 0.8
"""After this part of the grace time the exit handlers are over, and the phase ends."""

MAX_MESSAGE = 4096
"""The longest message, in characters, that exit handlers get in a variable."""


def handlers_for(registered: Iterable[Task], event: Event) -> list[Task]:
    """The handlers that run for an outcome, in the order in which they run: last registered first."""
    return [h for h in reversed(list(registered)) if event in h.events]


def handler_variables(event: Event, exit_code: int, message: str, vault: Vault) -> dict[str, str]:
    """The variables in which exit handlers find how the phase ended."""
    return {
        "PAIRUN_EVENT": event,
        "PAIRUN_EXIT_CODE": str(exit_code),
        "PAIRUN_MESSAGE": vault.text(message).replace("\0", "")[:MAX_MESSAGE],
    }


class HandlerTime:
    """The time that exit handlers have together, and its cuts.

    Args:
        grace_s: seconds between TERM and KILL that the platform gives.

    Attributes:
        waiting: how many handlers have not ended, the one that runs included.
    """

    def __init__(self, grace_s: float) -> None:
        self._grace_s = grace_s
        self._end: float | None = None
        self.waiting = 1

    @property
    def cancel_wait_s(self) -> float:
        """Seconds between TERM and KILL of what a stop signal cancels."""
        return min(TERM_WAIT_S, self._grace_s / 4)

    def stop_at_grace(self) -> None:
        """A stop signal came: the grace time begins now."""
        self.limit(GRACE_SHARE * self._grace_s)

    def limit(self, seconds: float) -> None:
        """End all handlers at the latest after these seconds."""
        end = time.monotonic() + seconds
        self._end = end if self._end is None else min(end, self._end)

    def share_of(self, handler: Task) -> float | None:
        """Seconds that the handler whose turn it is may take, or None for its own deadline alone."""
        return None if self._end is None and handler.deadline_s is not None else self.share_s()

    def share_s(self) -> float:
        """Seconds of one share of the remaining time."""
        if self._end is None:
            return HANDLER_DEADLINE_S
        return max(0.0, self._end - time.monotonic()) / self.waiting
