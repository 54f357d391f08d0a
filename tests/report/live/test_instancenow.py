"""What an instance does now, from its journal."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairun.report.live.instancenow import MOST_TASKS, InstanceNow, TaskLimits

LIMITS = {"git": TaskLimits(attempt_s=1200.0), "data": TaskLimits(task_s=60.0)}


def after(*records: dict[str, Any]) -> InstanceNow:
    now = InstanceNow("worker-1", LIMITS)
    for each in records:
        now.take({"time": time.time() - 12, **each})
    return now


BEGUN = {"type": "attempt_begin", "task": "git", "attempt": 2, "of": 10}


@pytest.mark.parametrize(
    ("records", "line"),
    [
        ([], "init  starting  0 s"),
        ([{"type": "phase_begin"}], "init  between tasks  12 s"),
        ([BEGUN], "init  git  attempt 2 of 10  12 s of 20 m"),
        (
            [BEGUN, {"type": "wait", "task": "git", "seconds": 42}],
            "init  git  attempt 3 of 10 in 30 s  12 s of 20 m",
        ),
        (
            [BEGUN, {"type": "progress", "task": "git", "bytes": 2048, "total": 4096}],
            "init  git  attempt 2 of 10  2 KiB of 4 KiB  12 s of 20 m",
        ),
        ([{**BEGUN, "task": "data", "of": 1}], "init  data  12 s of 1 m"),
        ([BEGUN, {**BEGUN, "task": "data"}], "init  git +1  attempt 2 of 10  12 s of 20 m"),
        ([BEGUN, {"type": "task_end", "task": "git"}], "init  starting  12 s"),
        ([{"type": "command_begin"}], "init  command  12 s"),
        ([{"type": "command_begin"}, {"type": "command_end"}], "init  ending  12 s"),
        ([{"type": "handlers_begin"}], "init  exit handlers  12 s"),
    ],
)
def test_the_line_of_an_instance(records: list[dict[str, Any]], line: str) -> None:
    """Phase, task, attempt, bytes, elapsed time and limit."""
    assert after(*records).activity().line == line


def test_a_new_phase_begins_anew() -> None:
    """What the last phase left does not count, and a stop is shown."""
    now = after(BEGUN, {"type": "command_begin"})
    now.begin("runtime")
    assert now.activity().line == "runtime  starting  0 s"
    now.stopping = True
    assert now.activity().line == "runtime  starting  stopping  0 s"


VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.just(10**400),
    st.lists(st.integers(), max_size=1), st.sampled_from(["git", "wait", "init", "__init__"]),
)  # fmt: skip
RECORDS = st.lists(
    st.dictionaries(
        st.sampled_from(["type", "task", "attempt", "of", "time", "bytes", "total", "seconds"]),
        VALUES | st.sampled_from(["attempt_begin", "progress", "wait", "task_end", "of_tasks"]),
    )
)


@given(records=RECORDS)
def test_no_record_of_a_job_harms_the_view(records: list[dict[str, Any]]) -> None:
    """A job can write to its journal: any value is survived, and what shows is printable."""
    now = InstanceNow("w-0", {})
    for each in records:
        now.take(each)
        line = now.activity().line
        assert line.isprintable()
        assert len(line) < 500


def test_endless_tasks_are_not_kept() -> None:
    """Tasks that begin and never end take a bounded memory."""
    now = after(*({**BEGUN, "task": json.dumps(n)} for n in range(MOST_TASKS * 3)))
    assert f"+{MOST_TASKS - 1}" in now.activity().line
