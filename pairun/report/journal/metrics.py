"""Sums up journals as OpenMetrics text (OpenMetrics 1.0), for one Pod or for many.

The names are an interface: each keeps its meaning, its unit and its labels.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, Literal, NamedTuple

from pairun.base.fields import between, field_of
from pairun.errors import Problem
from pairun.report.journal.finding import JournalFile, read_all, read_records

BUCKETS_S = (0.1, 1.0, 10.0, 60.0, 300.0, 1800.0, 7200.0, 43200.0, math.inf)
"""The upper bounds of the buckets of every histogram, in seconds."""

_MAX_SERIES = 2000
"""The most sets of labels that a family has; the rest is summed up under `_OTHER`."""
_OTHER = "other"
_MAX_LABEL = 100
_Duration = Annotated[float, between(0, 10**12)]


class Family(NamedTuple):
    """A family of metrics.

    Attributes:
        name: without the suffixes of its samples.
        kind: its type.
        meaning: one sentence.
        labels: the names of its labels.
    """

    name: str
    kind: Literal["gauge", "counter", "histogram"]
    meaning: str
    labels: tuple[str, ...] = ()


JOURNALS = Family("pairun_journals", "gauge", "Journals that were summed up, one for each Pod.")
_PHASES = Family(
    "pairun_phase_duration_seconds", "histogram", "How long a phase took, from its first task to "
    "its end.", ("phase", "outcome"),
)  # fmt: skip
EXITS = Family(
    "pairun_phase_exits", "counter", "Phases that ended, by exit code of the container.",
    ("phase", "outcome", "exit_code"),
)  # fmt: skip
TASKS = Family(
    "pairun_task_duration_seconds", "histogram", "How long a task took, with all its attempts and "
    "waits.", ("phase", "task", "outcome"),
)  # fmt: skip
ATTEMPTS = Family(
    "pairun_task_attempts", "counter", "Attempts of tasks that ended; the kind is that of a failure.",
    ("phase", "task", "outcome", "kind"),
)  # fmt: skip
WAITS = Family(
    "pairun_task_wait_seconds", "counter", "Seconds that tasks waited between attempts.",
    ("phase", "task"),
)  # fmt: skip
_COMMANDS = Family(
    "pairun_command_duration_seconds", "histogram", "How long the user's command ran.", ("outcome",)
)
FAILURES = Family(
    "pairun_failures", "counter", "Commands that failed, by class of the diagnosis and by fault.",
    ("class", "fault"),
)  # fmt: skip
STOPS = Family("pairun_stops", "counter", "Stop signals that PID 1 received.", ("signal", "sender"))
FAMILIES = (JOURNALS, _PHASES, EXITS, TASKS, ATTEMPTS, WAITS, _COMMANDS, FAILURES, STOPS)
_FAMILIES_OF = {
    "phase_end": (_PHASES, EXITS), "task_end": (TASKS,), "attempt_end": (ATTEMPTS,),
    "wait": (WAITS,), "command_end": (_COMMANDS,), "diagnosis": (FAILURES,), "stop": (STOPS,),
}  # fmt: skip
"""The families of each type of record."""


class Totals:
    """The sums of journals."""

    def __init__(self) -> None:
        self._journals = 0
        self._series: dict[Family, dict[tuple[str, ...], list[float]]] = {f: {} for f in FAMILIES}

    def add(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Add a journal; records without the fields that their family needs are skipped."""
        self._journals += 1
        phase = ""
        for record in records:
            kind = record.get("type")
            if kind == "phase_begin":
                phase = _label(record.get("phase"))
            elif kind == "command_end":
                outcome = "success" if record.get("exit_code") == 0 else "failure"
                record = {**record, "outcome": outcome}  # noqa: PLW2901
            for family in _FAMILIES_OF.get(kind, ()) if isinstance(kind, str) else ():
                self._add(family, record, phase)

    def text(self) -> str:
        """The text, with ``# EOF`` at its end."""
        return "\n".join([*self._lines(), "# EOF", ""])

    def _add(self, family: Family, record: Mapping[str, Any], phase: str) -> None:
        seconds = field_of(record, "seconds", _Duration)
        if family.kind != "histogram":
            amount = seconds if family is WAITS else 1.0
            if amount is not None:
                self._of(family, record, phase, 1)[0] += amount
        elif seconds is not None:
            values = self._of(family, record, phase, len(BUCKETS_S) + 1)
            values[-1] += seconds
            for n, bound in enumerate(BUCKETS_S):
                values[n] += seconds <= bound

    def _of(self, family: Family, record: Mapping[str, Any], phase: str, size: int) -> list[float]:
        known = {**record, "phase": record.get("phase") or phase}
        labels = tuple(_label(known.get(name)) for name in family.labels)
        series = self._series[family]
        if labels not in series and len(series) >= _MAX_SERIES:
            labels = (_OTHER,) * len(labels)
        return series.setdefault(labels, [0.0] * size)

    def _lines(self) -> Iterator[str]:
        self._series[JOURNALS] = {(): [float(self._journals)]}
        for family in FAMILIES:
            yield f"# TYPE {family.name} {family.kind}"
            if family.name.endswith("_seconds"):
                yield f"# UNIT {family.name} seconds"
            yield f"# HELP {family.name} {family.meaning}"
            for labels, values in sorted(self._series[family].items()):
                pairs = dict(zip(family.labels, labels, strict=True))
                yield from _samples(family, pairs, values)


def _samples(family: Family, labels: Mapping[str, str], values: list[float]) -> Iterator[str]:
    if family.kind != "histogram":
        suffix = "_total" if family.kind == "counter" else ""
        yield f"{family.name}{suffix}{_braces(labels)} {_number(values[0])}"
        return
    for bound, count in zip(BUCKETS_S, values, strict=False):
        le = "+Inf" if bound == math.inf else str(bound)
        yield f"{family.name}_bucket{_braces({**labels, 'le': le})} {_number(count)}"
    yield f"{family.name}_count{_braces(labels)} {_number(values[-2])}"
    yield f"{family.name}_sum{_braces(labels)} {_number(values[-1])}"


def _braces(labels: Mapping[str, str]) -> str:
    escapes = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
    escaped = (f'{name}="{value.translate(escapes)}"' for name, value in labels.items())
    return f"{{{','.join(escaped)}}}" if labels else ""


def _number(value: float) -> str:
    return str(int(value)) if value.is_integer() else repr(round(value, 6))


def _label(value: object) -> str:
    """A value as a label: empty if missing, and cut to a readable length."""
    if value is None or isinstance(value, dict | list):
        return ""
    return str(value).encode("utf-8", "replace").decode()[:_MAX_LABEL]


def read_metrics(path: str | None) -> tuple[str, list[Problem]]:
    """Sum up journals; skips a journal that cannot be read and reports it.

    Args:
        path: the path, as for `find`.

    Returns:
        The text and the problems; the text is empty if there is no journal.
    """
    totals = Totals()

    def add(file: JournalFile) -> None:
        if file.journal is not None:
            totals.add(entry.data for entry in read_records(file).entries)

    read, problems = read_all(path, add)
    return totals.text() if read else "", problems
