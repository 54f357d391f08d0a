"""What an instance does at this moment, as the views show it."""

from __future__ import annotations

import re

import attrs

from pairun.base.durations import format_duration
from pairun.base.sizes import format_size

COMMAND = "command"
"""What an instance does while the user's command runs."""


@attrs.frozen(kw_only=True)
class Activity:
    """One instance at one moment.

    Attributes:
        label: role and number.
        phase: ``init``, ``runtime``, or the phase of its Pod.
        doing: the task, ``command``, or what else takes the time.
        detail: which attempt, or why it waits; may be empty.
        elapsed_s: for how long, in seconds; None where nobody knows.
        limit_s: how long it may take, in seconds; None for no limit.
        done: bytes so far, from a task that reports progress.
        total: bytes in all, where the task knows.
        troubled: whether something failed and is retried, or waits for a person.
    """

    label: str
    phase: str
    doing: str
    detail: str = ""
    elapsed_s: float | None = None
    limit_s: float | None = None
    done: int | None = None
    total: int | None = None
    troubled: bool = False

    @property
    def time(self) -> str:
        """How long, and of how much: ``12 s of 20 m``."""
        if self.elapsed_s is None:
            return ""
        elapsed = spaced(format_duration(max(0, int(self.elapsed_s))))
        return elapsed if self.limit_s is None else f"{elapsed} of {limit_text(self.limit_s)}"

    @property
    def amount(self) -> str:
        """How many bytes, and of how many: ``12 MiB of 30 MiB``."""
        if self.done is None:
            return ""
        of = f" of {format_size(self.total)}" if self.total else ""
        return f"{format_size(self.done)}{of}"

    @property
    def line(self) -> str:
        """Everything in one line, for a view without columns."""
        parts = (self.phase, self.doing, self.detail, self.amount, self.time)
        return "  ".join(filter(None, parts))


def limit_text(seconds: float) -> str:
    """A limit for people: ``20 m``."""
    return spaced(format_duration(seconds))


def spaced(duration: str) -> str:
    """A duration for people: ``1m 5s`` for ``1m5s``, ``472 ms`` for ``472ms``."""
    parts = re.findall(r"([0-9.]+)([a-z]+)", duration)
    return " ".join(f"{n}{unit}" if len(parts) > 1 else f"{n} {unit}" for n, unit in parts)
