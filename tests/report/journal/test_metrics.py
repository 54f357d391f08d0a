"""The metrics of journals, read by Prometheus' own parser."""

from __future__ import annotations

import importlib
import math
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pairun.report.journal.metrics import FAMILIES, Totals
from tests.effort import cases

PARSER: Any = importlib.import_module("prometheus_client.openmetrics.parser")

STORY: list[dict[str, Any]] = [
    {"type": "phase_begin", "phase": "init"},
    {"type": "attempt_end", "task": "git", "outcome": "failed", "kind": "transient", "seconds": 2},
    {"type": "wait", "task": "git", "seconds": 1.5},
    {"type": "wait", "task": "git", "seconds": 4},
    {"type": "attempt_end", "task": "git", "outcome": "changed", "seconds": 3.0},
    {"type": "task_end", "task": "git", "outcome": "changed", "seconds": 9.75},
    {"type": "phase_end", "phase": "init", "outcome": "success", "exit_code": 0, "seconds": 11.0},
    {"type": "phase_begin", "phase": "runtime"},
    {"type": "stop", "signal": "SIGTERM", "sender": "outside"},
    {"type": "command_end", "exit_code": 1, "seconds": 90000.0},
    {"type": "diagnosis", "class": "gpu_oom", "fault": "user"},
    {"type": "phase_end", "phase": "runtime", "outcome": "failure", "exit_code": 1, "seconds": 5},
]


def samples(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """Every sample as Prometheus reads it; a text that is not valid fails the test."""
    return {
        (s.name, tuple(sorted(s.labels.items()))): s.value
        for family in PARSER.text_string_to_metric_families(text)
        for s in family.samples
    }


def totals(*journals: list[dict[str, Any]]) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """What journals add up to."""
    sums = Totals()
    for journal in journals:
        sums.add(journal)
    return samples(sums.text())


def key(name: str, **labels: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    """A sample's name and labels."""
    return name, tuple(sorted(labels.items()))


def test_the_names_stay() -> None:
    """They are an interface: dashboards and alerts hold them."""
    assert {f.name: (f.kind, f.labels) for f in FAMILIES} == {
        "pairun_journals": ("gauge", ()),
        "pairun_phase_duration_seconds": ("histogram", ("phase", "outcome")),
        "pairun_phase_exits": ("counter", ("phase", "outcome", "exit_code")),
        "pairun_task_duration_seconds": ("histogram", ("phase", "task", "outcome")),
        "pairun_task_attempts": ("counter", ("phase", "task", "outcome", "kind")),
        "pairun_task_wait_seconds": ("counter", ("phase", "task")),
        "pairun_command_duration_seconds": ("histogram", ("outcome",)),
        "pairun_failures": ("counter", ("class", "fault")),
        "pairun_stops": ("counter", ("signal", "sender")),
    }


def test_a_journal_as_metrics() -> None:
    """Durations, attempts, waits, exit codes and the class of a failure."""
    found = totals(STORY)
    git = {"phase": "init", "task": "git"}
    assert found[key("pairun_journals")] == 1
    assert found[key("pairun_task_wait_seconds_total", **git)] == 5.5
    attempt = {**git, "outcome": "failed", "kind": "transient"}
    assert found[key("pairun_task_attempts_total", **attempt)] == 1
    name, git = "pairun_task_duration_seconds", {**git, "outcome": "changed"}
    assert found[key(f"{name}_sum", **git)] == 9.75
    assert found[key(f"{name}_bucket", **git, le="1.0")] == 0
    assert found[key(f"{name}_bucket", **git, le="10.0")] == 1
    name = "pairun_command_duration_seconds_bucket"
    assert found[key(name, outcome="failure", le="43200.0")] == 0
    assert found[key(name, outcome="failure", le="+Inf")] == 1
    end = {"phase": "runtime", "outcome": "failure", "exit_code": "1"}
    assert found[key("pairun_phase_exits_total", **end)] == 1
    assert found[key("pairun_failures_total", **{"class": "gpu_oom", "fault": "user"})] == 1
    assert found[key("pairun_stops_total", signal="SIGTERM", sender="outside")] == 1


def test_journals_add_up() -> None:
    """Every sample of two equal journals is twice that of one."""
    one, two = totals(STORY), totals(STORY, STORY)
    assert two == {name: 2 * value for name, value in one.items()}


def test_nothing_at_all_is_valid() -> None:
    """A folder with an empty journal has the families and no sample."""
    assert totals([]) == {key("pairun_journals"): 1}


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
VALUES = SCALARS | st.lists(SCALARS, max_size=2) | st.dictionaries(st.text(), SCALARS, max_size=2)
FIELDS = ("phase", "task", "outcome", "kind", "class", "fault", "signal", "sender", "exit_code", "seconds")  # fmt: skip
RECORDS = st.builds(
    lambda kind, fields: {"type": kind, **fields},
    st.sampled_from(sorted({r["type"] for r in STORY})) | SCALARS,
    st.dictionaries(st.sampled_from(FIELDS), VALUES),
)


@settings(max_examples=cases(100), deadline=None)
@given(st.lists(RECORDS, max_size=12))
def test_what_a_job_writes_into_its_journal_breaks_no_scrape(records: list[dict[str, Any]]) -> None:
    """Quotes, line ends, foreign types and absurd numbers: the text stays valid."""
    assert all(math.isfinite(value) for value in totals(records).values())


def test_the_number_of_series_is_bounded() -> None:
    """A journal that names a million tasks makes no million series, and loses no second."""
    waits = [{"type": "wait", "task": f"t{n}", "seconds": 1} for n in range(5000)]
    found = totals(waits)
    assert len(found) < 2100
    assert sum(v for (name, _), v in found.items() if name.startswith("pairun_task_wait")) == 5000
