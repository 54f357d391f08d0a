"""The differences of jobs as plain data for JSON, with their secrets masked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pairun.errors import Problem
from pairun.playbook.content import Content
from pairun.report.problems import problem_data
from pairun.report.shown import shown_data
from pairun.review.diff.compare import RoleDiff, TaskChange, TaskSide
from pairun.review.diff.diagnosisdiff import DiagnosisDiff
from pairun.review.diff.jobdiff import Comparison, JobDiff
from pairun.review.diff.values import DEFAULT, Value, ValueChange
from pairun.secrets.vault import Vault

SCHEMA = 1


def comparison_data(comparison: Comparison) -> dict[str, Any]:
    """Return the whole document."""
    return {
        "schema": SCHEMA,
        "roots": {
            "old": _roots_data(comparison.old),
            "new": _roots_data(comparison.new),
        },
        "differs": comparison.any,
        "diagnosis": _diagnosis_data(comparison.diagnosis),
        "policy": list(_values_data(comparison.policy, comparison.vault)),
        "jobs": {diff.path: _job_data(diff, comparison.vault) for diff in comparison.jobs},
        "problems": [],
    }


def _diagnosis_data(diff: DiagnosisDiff) -> dict[str, Any]:
    codes = {
        klass: {"old": code.old, "new": code.new, "place": str(code.place)}
        for klass, code in diff.exit_codes.items()
    }
    return {"exit_codes": codes, "rules_changed": list(diff.files)}


def refused_data(problems: Sequence[Problem], vault: Vault) -> dict[str, Any]:
    """Return the document of a comparison that could not start."""
    return {"schema": SCHEMA, "jobs": {}, "problems": [problem_data(p, vault) for p in problems]}


def _roots_data(content: Content) -> list[dict[str, str]]:
    return [{"layer": r.layer, "path": r.path, "digest": r.digest()} for r in content.roots]


def _job_data(job: JobDiff, vault: Vault) -> dict[str, Any]:
    problems = {"old": job.problems.old, "new": job.problems.new, "both": job.problems.both}
    return {
        "compared": not all(diff.missing for diff in job.roles.values()),
        "roles": {name: role_data(diff, vault) for name, diff in job.roles.items()},
        "problems": {
            side: [problem_data(p, vault) for p in those] for side, those in problems.items()
        },
    }


def role_data(diff: RoleDiff, vault: Vault) -> dict[str, Any]:
    """The differences of one role."""
    out: dict[str, Any] = {"cannot_be_planned": diff.missing} if diff.missing else {}
    for phase, tasks in diff.tasks.items():
        out[phase] = [_task_data(c, vault) for c in tasks]
    if diff.grace:
        out["grace"] = {
            p: {s: _value_data(v, vault) for s, v in (("old", c.old), ("new", c.new))}
            for p, c in diff.grace.items()
        }
    out["modules"] = {
        name: {s: {"where": where, "sha256": sha} for s, (where, sha) in zip(("old", "new"), both, strict=True)}
        for name, both in diff.modules.items()
    }  # fmt: skip
    out["plugins"] = list(diff.plugins)
    if diff.pod:
        out["pod"] = list(_values_data(diff.pod, vault))
    return out


def _task_data(change: TaskChange, vault: Vault) -> dict[str, Any]:
    out: dict[str, Any] = {"id": change.task.id, "change": change.kind}
    for side, task in (("old", change.old), ("new", change.new)):
        if task is not None:
            out[side] = _side_data(task, vault)
    if change.because:
        out["because"] = vault.text(change.because)
    if change.moved:
        out["moved"] = {"was_after": change.moved[0], "is_after": change.moved[1]}
    if change.old is None:
        set_here = {p: v for p, v in change.task.values.items() if v.setter != DEFAULT}
        out["values"] = [
            {"path": ".".join(p), "old": None, "new": _value_data(v, vault)}
            for p, v in set_here.items()
        ]
    elif change.new is not None:
        out["values"] = list(_values_data(change.values, vault))
    return out


def _side_data(task: TaskSide, vault: Vault) -> dict[str, str]:
    return {
        "name": vault.text(task.name),
        "module": task.module,
        "layer": task.layer,
        "where": task.where,
    }


def _values_data(values: Sequence[ValueChange], vault: Vault) -> Iterator[dict[str, Any]]:
    for v in values:
        yield {
            "path": v.path,
            "old": _value_data(v.old, vault),
            "new": _value_data(v.new, vault),
        }


def _value_data(value: Value | None, vault: Vault) -> dict[str, Any] | None:
    if value is None:
        return None
    return {"value": shown_data(value.value, vault), "by": value.setter}
