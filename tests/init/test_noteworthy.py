"""What of a phase becomes an Event, and what does not."""

from __future__ import annotations

from typing import Any

from pairun.init.eventsender import LATE_S, MOST, REPEAT_S, Noteworthy
from pairun.kube.events import Note


class Phase:
    """A phase whose clock the test sets."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.noteworthy = Noteworthy(lambda: self.now)

    def note(self, type_: str, task: str, **fields: Any) -> Note | None:
        """What a record is worth."""
        return self.noteworthy.note_of({"type": type_, "task": task, **fields})


def test_a_gang_that_is_complete_in_time_is_no_event() -> None:
    """Nothing is due once the barrier has ended."""
    phase = Phase()
    assert phase.noteworthy.due_s() is None
    phase.note("attempt_begin", "barrier", module="barrier")
    assert phase.noteworthy.due_s() == LATE_S
    phase.now += LATE_S - 1
    assert phase.noteworthy.overdue() is None
    assert phase.note("task_end", "barrier", outcome="ok", attempts=1, seconds=59.0) is None
    phase.now += 2
    assert (phase.noteworthy.due_s(), phase.noteworthy.overdue()) == (None, None)


def test_an_incomplete_gang_names_who_is_missing_and_is_repeated_seldom() -> None:
    """The barrier's last line; the next Event comes ten minutes later."""
    phase = Phase()
    phase.note("attempt_begin", "barrier", module="barrier")
    phase.note("output", "git", line="not of the barrier")
    phase.note(
        "output", "barrier", line="2 of 3 instances have addresses; missing: worker-2 (Pending)"
    )
    phase.now += LATE_S
    note = phase.noteworthy.overdue()
    assert note is not None
    assert (note.reason, note.warning) == ("GangIncomplete", True)
    assert note.message.endswith("missing: worker-2 (Pending)")
    assert phase.noteworthy.overdue() is None
    phase.now += REPEAT_S
    assert phase.noteworthy.overdue() is not None


def test_a_retry_that_healed_late_is_told_with_what_was_wrong() -> None:
    """One that healed soon is not."""
    phase = Phase()
    phase.note("attempt_end", "git", outcome="failed", message="the server limits requests")
    soon = {"outcome": "changed", "attempts": 4, "seconds": LATE_S - 1}
    assert phase.note("task_end", "git", **soon) is None
    assert phase.note("task_end", "git", **soon | {"seconds": 300.0}) == Note(
        "TaskHealed",
        "git succeeded at attempt 4 after 5m; before: the server limits requests",
        warning=False,
    )
    assert phase.note("task_end", "big", outcome="changed", attempts=1, seconds=900.0) is None


def test_a_failed_task_is_a_warning_with_its_hint() -> None:
    """An ignored one is not."""
    phase = Phase()
    failed = {"outcome": "failed", "attempts": 1, "seconds": 1.0, "message": "no such image"}
    assert phase.note("task_end", "image_check", **failed, hint="check the tag") == Note(
        "TaskFailed", "image_check failed: no such image; check the tag", warning=True
    )
    assert phase.note("task_end", "image_check", **failed | {"outcome": "ignored"}) is None


def test_the_number_of_events_is_bounded() -> None:
    """However many tasks fail."""
    phase = Phase()
    ends = {"outcome": "failed", "attempts": 1, "seconds": 1.0, "message": "x"}
    notes = [phase.note("task_end", f"t{n}", **ends) for n in range(MOST + 5)]
    assert sum(note is not None for note in notes) == MOST
