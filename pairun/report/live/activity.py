"""What an instance does now, in the form that the views show."""

from __future__ import annotations

import re

import attrs

from pairun.base.durations import format_duration
from pairun.base.sizes import format_size

COMMAND = "command"
"""The activity of an instance while the user's command runs."""


@attrs.frozen(kw_only=True)
class Activity:
    """The state of one instance at one moment.

    Attributes:
        label: role and number.
        phase: ``init``, ``runtime``, or the phase of its Pod.
        doing: the task, ``command``, or what else it does.
        detail: the attempt, or why it waits; may be empty.
        elapsed_s: for how long, in seconds; None if unknown.
        limit_s: the time limit, in seconds; None for no limit.
        done: bytes so far, from a task that reports progress.
        total: bytes in total, if the task knows.
        troubled: whether it retries after a failure, or waits for a person.
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
        """The elapsed time and the limit: ``12 s of 20 m``."""
        if self.elapsed_s is None:
            return ""
        elapsed = spaced(format_duration(max(0, int(self.elapsed_s))))
        return elapsed if self.limit_s is None else f"{elapsed} of {limit_text(self.limit_s)}"

    @property
    def amount(self) -> str:
        """The bytes so far and in total: ``12 MiB of 30 MiB``."""
        if self.done is None:
            return ""
        of = f" of {format_size(self.total)}" if self.total else ""
        return f"{format_size(self.done)}{of}"

    @property
    def line(self) -> str:
        """All of it in one line, for a view without columns."""
        parts = (self.phase, self.doing, self.detail, self.amount, self.time)
        return "  ".join(filter(None, parts))


def limit_text(seconds: float) -> str:
    """A time limit for people: ``20 m``."""
    return spaced(format_duration(seconds))


def spaced(duration: str) -> str:
    """A duration for people: ``1m 5s`` for ``1m5s``, ``472 ms`` for ``472ms``."""
    parts = re.findall(r"([0-9.]+)([a-z]+)", duration)
    return " ".join(f"{n}{unit}" if len(parts) > 1 else f"{n} {unit}" for n, unit in parts)
