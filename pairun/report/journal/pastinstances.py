"""The instances of a run: how each ended, and which had the same result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import attrs

from pairun.report.journal.history import UNFINISHED, PhasePast

_WORST_FIRST = ("failed", "stopped", UNFINISHED, "no journal", "succeeded")


@attrs.frozen(kw_only=True)
class InstancePast:
    """One instance, or the Pod that a journal belongs to.

    Attributes:
        label: its name for people.
        journal: the journal's path, or None if it has none.
        logs: the files with its output.
        phases: its phases.
        notes: problems with reading the journal, for people.
        ignored: how many records of each unknown type were skipped.
        known: other known facts about an instance without a journal, as text.
    """

    label: str
    journal: str | None
    logs: Sequence[str] = ()
    phases: Sequence[PhasePast] = ()
    notes: Sequence[str] = ()
    ignored: Counter[str] = attrs.field(factory=Counter)
    known: str = ""

    @property
    def outcome(self) -> str:
        """succeeded, failed, stopped, unfinished or no journal."""
        if self.journal is None:
            return "no journal"
        if not self.phases:
            return UNFINISHED
        last = self.phases[-1]
        ended = {"failure": "failed", "signal": "stopped"}.get(last.outcome)
        if ended or last.outcome != "success":
            return ended or UNFINISHED
        return "succeeded" if last.name != "init" else UNFINISHED

    @property
    def exit_code(self) -> int | None:
        """The exit code of its last phase; None if it has no end, and between init and runtime."""
        if not self.phases or self.outcome == UNFINISHED:
            return None
        return self.phases[-1].exit_code

    @property
    def seconds(self) -> float:
        """The total duration of its phases, in seconds."""
        return sum(p.seconds for p in self.phases)

    @property
    def began(self) -> float:
        """The time of its first record in seconds since the epoch, by its machine's clock; or 0."""
        return next((p.began - p.began_s for p in self.phases if p.began is not None), 0.0)

    @property
    def state(self) -> str:
        """How it ended, as text."""
        if self.journal is None:
            return f"no journal: {self.known or 'no phase has begun'}"
        if not self.phases:
            return "nothing recorded: no phase has begun"
        last = self.phases[-1]
        if self.outcome != UNFINISHED:
            return f"{self.outcome}, exit code {last.exit_code}"
        if last.outcome == "success":
            return "init is done; the runtime phase has not begun"
        return f"no end of the {last.title} is recorded: it still runs, or was killed"

    def result_key(self) -> tuple[object, ...]:
        """A key that is equal for instances with the same result."""
        return (
            self.outcome,
            tuple(self.notes),
            tuple(
                (
                    p.name,
                    p.outcome,
                    p.exit_code,
                    p.command and p.command.exit_code,
                    p.diagnosis and p.diagnosis["class"],
                )
                for p in self.phases
            ),
            tuple(
                (t.id, t.outcome, t.details.get("kind"), len(t.attempts) > 1)
                for p in self.phases
                for t in p.tasks
            ),
        )


def alike(instances: Sequence[InstancePast]) -> list[list[InstancePast]]:
    """Group instances with the same result: failed groups first, the slowest first in each."""
    groups: dict[tuple[object, ...], list[InstancePast]] = {}
    for instance in instances:
        groups.setdefault(instance.result_key(), []).append(instance)
    for group in groups.values():
        group.sort(key=lambda i: -i.seconds)
    return sorted(groups.values(), key=lambda g: _WORST_FIRST.index(g[0].outcome))
