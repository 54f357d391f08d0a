"""The report on a run as JSON data; docs/report.md describes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from pairun.report.journal.blame import blame, slowest
from pairun.report.journal.history import AttemptPast, InstancePast, PhasePast, TaskPast, alike

SCHEMA = 1
"""Increases when a field is removed or changes its meaning, not when one is added."""

_FAILURE = ("kind", "fault", "message", "hint", "exit_code")


def report_data(
    instances: Sequence[InstancePast], *, problems: Sequence[Any] = (), with_blame: bool = False
) -> dict[str, Any]:
    """The whole report.

    Args:
        instances: the instances.
        problems: problems with reading journals, as data.
        with_blame: whether to add where the time went.
    """
    data: dict[str, Any] = {
        "schema": SCHEMA,
        "instances": [instance_data(i, with_blame=with_blame) for i in instances],
        "alike": [[i.label for i in group] for group in alike(instances)],
        "problems": list(problems),
    }
    if with_blame:
        data["slowest"] = [attrs.asdict(s) for s in slowest(instances)]
    return data


def instance_data(instance: InstancePast, *, with_blame: bool = False) -> dict[str, Any]:
    """One instance; times ``began_s`` and ``at_s`` count from the first record of its journal."""
    return {
        "label": instance.label,
        "outcome": instance.outcome,
        "exit_code": instance.exit_code,
        "journal": instance.journal,
        "logs": list(instance.logs),
        "notes": list(instance.notes),
        "ignored_records": dict(instance.ignored),
        "phases": [_phase(p, with_blame=with_blame) for p in instance.phases],
    }


def _phase(phase: PhasePast, *, with_blame: bool) -> dict[str, Any]:
    command = phase.command
    data: dict[str, Any] = {
        "phase": phase.name,
        "start": phase.start,
        "began": phase.began,
        "began_s": phase.began_s,
        "pairun": phase.pairun,
        "outcome": phase.outcome,
        "exit_code": phase.exit_code,
        "message": phase.message,
        "seconds": phase.seconds,
        "measured": phase.measured,
        "handlers_for": phase.event,
        "handlers_began_s": None if phase.event is None else phase.event_s,
        "stops": [{**attrs.asdict(s), "origin": s.origin} for s in phase.stops],
        "tasks": [_task(t) for t in phase.tasks],
        "command": None
        if command is None
        else {
            "exit_code": command.exit_code,
            "began_s": command.began_s,
            "seconds": command.seconds,
            "measured": command.measured,
        },
        "diagnosis": phase.diagnosis,
    }
    if with_blame:
        data["blame"] = blame_data(phase)
    return data


def blame_data(phase: PhasePast) -> dict[str, Any]:
    """Where the time of a phase went."""
    phase_blame = blame(phase)
    return {
        "costs": [attrs.asdict(c) for c in phase_blame.costs],
        "path": list(phase_blame.path),
        "overhead_s": phase_blame.overhead_s,
        "overhead": dict(phase_blame.overhead),
    }


def _task(task: TaskPast) -> dict[str, Any]:
    return {
        "id": task.id,
        "name": task.name,
        "module": task.module,
        "handler": task.handler,
        "outcome": task.outcome,
        **{k: task.details.get(k) for k in _FAILURE},
        "trace": task.details.get("trace"),
        "began_s": task.began_s,
        "seconds": task.seconds,
        "measured": task.measured,
        "of": task.of,
        "attempts": [_attempt(a) for a in task.attempts],
        "waits": [attrs.asdict(w) for w in task.waits],
        "settings": task.settings,
    }


def _attempt(attempt: AttemptPast) -> dict[str, Any]:
    return {
        "attempt": attempt.number,
        "outcome": attempt.outcome,
        "began_s": attempt.began_s,
        "seconds": attempt.seconds,
        "measured": attempt.measured,
        **{k: attempt.details.get(k) for k in _FAILURE},
        "output": attempt.details.get("output", []),
        "trace": attempt.details.get("trace"),
    }
