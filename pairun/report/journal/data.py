"""The report on a run as JSON data; docs/report.md describes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from pairun.report.journal.blame import blame, slowest
from pairun.report.journal.history import InstancePast, PhasePast, alike

_SCHEMA = 1
"""Increases when a field is removed or changes its meaning, not when one is added."""


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
        "schema": _SCHEMA,
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
    data = attrs.asdict(phase, filter=lambda field, _: field.name != "span")
    named = {"phase": data.pop("name"), **data}
    return {**named, "blame": blame_data(phase)} if with_blame else named


def blame_data(phase: PhasePast) -> dict[str, Any]:
    """Where the time of a phase went."""
    phase_blame = blame(phase)
    return {
        "costs": [attrs.asdict(c) for c in phase_blame.costs],
        "path": list(phase_blame.path),
        "overhead_s": phase_blame.overhead_s,
        "overhead": dict(phase_blame.overhead),
    }
