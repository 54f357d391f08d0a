"""What a page shows of each instance: phases, tasks, attempts and waits on one time axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pairun.report.journal.blame import blame
from pairun.report.journal.history import AttemptPast, PhasePast, StopPast, TaskPast
from pairun.report.journal.pastinstances import InstancePast
from pairun.report.journal.records import describe
from pairun.report.page.clipping import clip
from pairun.report.page.tasksettings import SettingsTable
from pairun.volume.journal import Record

WAITING = ("barrier", "ssh_barrier")
"""Modules whose tasks wait for other instances."""

MAX_LINES = 20
"""How many of a failed attempt's last output lines the page shows."""

MOST_STOPS = 10
"""How many stop signals of a phase the page shows."""


def role_of(label: str) -> str:
    """The role in an instance's name: ``worker`` of ``worker-3``."""
    role, _, index = label.rpartition("-")
    return role if role and index.isdecimal() else label


def lane(instance: InstancePast, zero: float, settings: SettingsTable) -> dict[str, Any]:
    """An instance as data for the page's script; every text is on one line and safe to show.

    Args:
        instance: the instance.
        zero: the origin of the page's time axis, in seconds since the epoch.
        settings: collects who set the values of its tasks.
    """
    shift_s = instance.began - zero
    return {
        "label": describe(instance.label),
        "role": describe(role_of(instance.label)),
        "outcome": instance.outcome,
        "state": describe(instance.state),
        "logs": [describe(log) for log in instance.logs],
        "notes": [describe(note) for note in instance.notes],
        "phases": [_phase(p, shift_s, settings) for p in instance.phases],
    }


def texts(record: Record, names: Sequence[str]) -> dict[str, str]:
    """The fields of a record that are non-empty texts, each safe to show."""
    return {n: clip(record[n]) for n in names if record.get(n) not in (None, "")}


def _phase(phase: PhasePast, shift_s: float, settings: SettingsTable) -> dict[str, Any]:
    path = set(blame(phase).path)
    data: dict[str, Any] = {
        "name": describe(phase.name) or "unnamed",
        "title": phase.title,
        "outcome": phase.outcome,
        "code": phase.exit_code,
        "message": clip(phase.message),
        "begin": _seconds(shift_s + phase.began_s),
        "seconds": _seconds(phase.seconds),
        "tasks": [_task(t, shift_s, settings, on_path=t.id in path) for t in phase.tasks],
    }
    if not phase.measured:
        data["about"] = True
    if phase.command is not None:
        data["command"] = {
            "code": phase.command.exit_code,
            "begin": _seconds(shift_s + phase.command.began_s),
            "seconds": _seconds(phase.command.seconds),
        }
    if phase.event is not None:
        data["event"] = {"name": phase.event, "at": _seconds(shift_s + phase.event_s)}
    if phase.stops:
        data["stops"] = [_stop(s, shift_s) for s in phase.stops[:MOST_STOPS]]
    if phase.diagnosis is not None:
        data["why"] = diagnosis(phase.diagnosis)
    return data


def _stop(stop: StopPast, shift_s: float) -> dict[str, Any]:
    return {
        "signal": clip(stop.signal),
        "from": clip(stop.origin),
        "at": _seconds(shift_s + stop.at_s),
    }


def diagnosis(record: Record) -> dict[str, Any]:
    """A diagnosis as data for the page."""
    fields = texts(record, ("class", "fault", "retry", "headline", "advice"))
    evidence = [clip(e.get("text", "")) for e in record.get("evidence") or ()]
    confidence = record.get("confidence")
    return {**fields, "evidence": evidence} | (
        {"confidence": confidence} if confidence is not None else {}
    )


def _task(
    task: TaskPast, shift_s: float, settings: SettingsTable, *, on_path: bool
) -> dict[str, Any]:
    data: dict[str, Any] = {
        "id": describe(task.id),
        "outcome": task.outcome,
        "begin": _seconds(shift_s + task.began_s),
        "seconds": _seconds(task.seconds),
        **texts(task.details, ("kind", "fault", "message", "hint", "trace")),
    }
    if task.name:
        data["name"] = clip(task.name)
    if task.module:
        data["module"] = describe(task.module)
    if task.of is not None and task.of > 1:
        data["of"] = task.of
    if task.settings is not None:
        data["settings"] = settings.number(task.settings)
    flags = (
        ("handler", task.handler), ("path", on_path), ("waits_for_others", task.module in WAITING),
        ("about", not task.measured),
    )  # fmt: skip
    data |= {name: True for name, is_set in flags if is_set}
    if len(task.attempts) > 1 or task.failed or task.outcome == "ignored":
        data["attempts"] = [_attempt(a, shift_s) for a in task.attempts]
        data["waits"] = [
            {"begin": _seconds(shift_s + w.began_s), "seconds": _seconds(w.seconds)}
            | ({"because": clip(w.because)} if w.because else {})
            for w in task.waits
        ]
    return data


def _attempt(attempt: AttemptPast, shift_s: float) -> dict[str, Any]:
    output = [clip(line) for line in attempt.details.get("output") or ()]
    return {
        "number": attempt.number,
        "outcome": attempt.outcome,
        "begin": _seconds(shift_s + attempt.began_s),
        "seconds": _seconds(attempt.seconds),
        **texts(attempt.details, ("kind", "message", "hint", "trace")),
    } | ({"output": output[-MAX_LINES:]} if output else {})


def _seconds(value: float) -> float:
    # Milliseconds are precise enough, and keep a page of many instances small.
    return round(value, 3)
