"""Finds the instance that failed first, and why."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from pairun.incident.instances import InstanceFailure, first_of, what_followed
from pairun.report.journal.history import PhasePast
from pairun.report.journal.pastinstances import InstancePast
from pairun.volume.journal import Record


@attrs.frozen(kw_only=True)
class FirstFailure:
    """The failure that caused the others.

    Attributes:
        label: the instance's name.
        why: the reason, in one sentence.
        advice: what to do; empty if unknown.
        diagnosis: the journal's diagnosis, if the failure was diagnosed.
    """

    label: str
    why: str
    advice: str = ""
    diagnosis: Record | None = None


def first_failure(instances: Sequence[InstancePast]) -> FirstFailure | None:
    """Find the first failure: causes rank before their effects; then the earlier one is first.

    Args:
        instances: the instances of one job.

    Returns:
        None if nothing failed.
    """
    failed = [
        (instance, phase)
        for instance in instances
        for phase in instance.phases
        if phase.outcome == "failure"
    ]
    if not failed:
        return None
    failures = [
        InstanceFailure(instance.label, _class(phase), _ended_at(instance, phase))
        for instance, phase in failed
    ]
    number = first_of(failures)
    label, phase = failures[number].label, failed[number][1]
    if phase.diagnosis is not None:
        return FirstFailure(
            label=label,
            why="; ".join(
                filter(None, (str(phase.diagnosis.get("headline") or ""), what_followed(failures)))
            ),
            advice=str(phase.diagnosis.get("advice") or ""),
            diagnosis=phase.diagnosis,
        )
    task = next((t for t in phase.tasks if t.failed and not t.handler), None)
    if task is not None:
        return FirstFailure(
            label=label,
            why=f"{task.id} failed: {task.message}",
            advice=str(task.details.get("hint") or ""),
        )
    return FirstFailure(label=label, why=phase.message or f"exit code {phase.exit_code}")


def stop_by_person(instances: Sequence[InstancePast]) -> str | None:
    """How a person stopped the job, in one sentence; None after a failure or without a stop."""
    phases = [phase for instance in instances for phase in instance.phases]
    if any(phase.outcome == "failure" for phase in phases):
        return None
    headlines = (
        str(phase.diagnosis.get("headline") or "")
        for phase in phases
        if phase.diagnosis is not None and phase.diagnosis.get("class") == "cancelled_by_user"
    )
    return next(headlines, None)


def _class(phase: PhasePast) -> str:
    return str((phase.diagnosis or {}).get("class") or "")


def _ended_at(instance: InstancePast, phase: PhasePast) -> float:
    return instance.began + phase.began_s + phase.seconds
