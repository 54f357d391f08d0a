"""Times of many programs, and the distance between them."""

from __future__ import annotations

import pytest

from pairun.incident.times import moment_in, seconds_between


@pytest.mark.parametrize(
    ("line", "clock", "form"),
    [
        ("2026-03-01 12:04:17,250 INFO step", "12:04:17", "date"),
        ("2026-03-01T12:04:17.25Z stdout F x", "12:04:17", "zone"),
        ("2026-03-01T14:04:17+02:00 x", "12:04:17", "zone"),
        ("[rank3]:[E301 12:04:17.250000000 ProcessGroupNCCL.cpp:1] x", "12:04:17", "day"),
        ("E0301 12:04:17.250000 7 api.py:869] failed", "12:04:17", "day"),
        ("Mar  1 12:04:17 node7 kernel: x", "12:04:17", "day"),
        ("[Sun Mar  1 12:04:17 2026] Out of memory", "12:04:17", "date"),
        ("ERROR 03-01 12:04:17 [engine.py:9] x", "12:04:17", "day"),
        ("12:04:17 step 3", "12:04:17", "clock"),
    ],
)
def test_a_time_is_read(line: str, clock: str, form: str) -> None:
    """Each form that loggers, containers and the kernel use."""
    moment = moment_in(line)
    assert moment is not None
    assert (moment.clock(), moment.form) == (clock, form)


def test_times_of_different_forms_are_compared() -> None:
    """A year or a date that one of them lacks is left out of both."""
    full, day, clock = (
        moment_in("2026-03-01 12:04:17 x"),
        moment_in("E0301 12:14:17.000000 7 x] y"),
        moment_in("12:04:20 x"),
    )
    assert full is not None
    assert day is not None
    assert clock is not None
    assert seconds_between(full, day) == 600
    assert seconds_between(full, clock) == 3


@pytest.mark.parametrize("line", ["loss 0.5 at step 12", "2026-13-77 12:04:17", "version 12.4.1"])
def test_a_line_without_a_time(line: str) -> None:
    """Numbers alone make no time."""
    assert moment_in(line) is None
