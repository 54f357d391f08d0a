"""Times of many programs, and the distance between them."""

from __future__ import annotations

from pathlib import Path

import pytest

from pairun.diagnose.incident import incident_lines
from pairun.diagnose.lines import Log
from pairun.diagnose.table import Table
from pairun.diagnose.times import moment_in, moment_of_failure, seconds_between
from tests.diagnose.jobs import incident_of, write


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


_RAISED = (
    "Traceback (most recent call last):\n"
    '  File "/job/train.py", line 41, in <module>\n'
    "    loss.backward()\n"
    "KeyError: 'label'\n"
)


@pytest.mark.parametrize(
    ("text", "clock"),
    [
        (f"10:00:00 starting\n{_RAISED}", None),
        (f"10:00:00 starting\nloading\n{_RAISED}", None),
        (f"started\n10:00:00 loading\nstep 1\nstep 2\nstep 3\n{_RAISED}", None),
        (f"started\n10:00:00 loading\n{_RAISED}", "10:00:00"),
        (f"10:00:00 step 1 loss 0.7\n{_RAISED}", "10:00:00"),
        (f"10:00:00 starting\n{_RAISED.replace('KeyError', '10:00:09 KeyError')}", "10:00:09"),
        (f"10:00:00 starting\n{_RAISED}10:00:09 the command ended\n", "10:00:09"),
        (f"10:00:00 starting\n{_RAISED}a\nb\nc\n10:00:09 the command ended\n", None),
    ],
)
def test_only_a_line_close_to_a_failure_has_its_time(text: str, clock: str | None) -> None:
    """The first line of a log tells when the log began."""
    log = Log(text.encode())
    moment = moment_of_failure(log, log.data.index(b"KeyError"))
    assert (moment.clock() if moment else None) == clock


def test_a_failure_without_a_time_is_told_without_one(tmp_path: Path, table: Table) -> None:
    """Neither the first rank nor the consequences get the time of the log's start."""
    lost = (
        "RuntimeError: [gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.3]:41\n"
    )
    logs = {f"rank{n}.log": f"10:00:0{n} starting\nloading\n{lost}" for n in range(3)}
    logs["rank1.log"] = f"10:00:01 starting\nloading\n{_RAISED}"
    lines = incident_lines(incident_of(write(tmp_path, logs), table))
    assert lines[0] == "rank 1 raised KeyError; 2 others stopped waiting for it"
    assert not [line for line in lines if "within" in line]


@pytest.mark.parametrize(("end", "told"), [("", False), ("10:00:09 step 7\n", True)])
def test_the_end_of_a_log_has_the_time_of_a_close_line(
    end: str, told: bool, tmp_path: Path, table: Table
) -> None:
    """A rank that the others lost is named without the time at which its log began."""
    lost = (
        "RuntimeError: [gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.3]:41\n"
    )
    logs = {f"rank{n}.log": f"10:00:0{n} starting\nloading\n{lost}" for n in range(3)}
    logs["rank1.log"] = f"10:00:01 starting\nloading\n{end}"
    lines = incident_lines(incident_of(write(tmp_path, logs), table))
    assert lines[0].startswith("the log of rank 1 ends without an error")
    assert ("its log ends at 10:00:09" in lines[0]) == told
    assert ("its log ends at" in lines[0]) == told
