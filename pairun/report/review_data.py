"""A review as JSON data, with its secrets masked."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pairun.errors import Problem
from pairun.job.templates import user_command
from pairun.module import Phase
from pairun.plan import Task
from pairun.playbook.podfragment import NO_POD_SETTINGS, PodSettings
from pairun.report.problems import problem_data
from pairun.report.shown import override_data, shown_data, source_data
from pairun.review.jobreview import JobReview
from pairun.review.taskreview import Reviewed, is_unset, keyword_values, sources_of
from pairun.secrets.vault import Vault

SCHEMA = 1


def reviews_data(reviews: Sequence[JobReview]) -> dict[str, Any]:
    """Return the document of one review, or of several, by file."""
    documents = {r.path: _review_data(r) for r in reviews}
    if len(documents) == 1:
        return {"schema": SCHEMA, **next(iter(documents.values()))}
    return {"schema": SCHEMA, "jobs": documents}


def refused_data(problems: Sequence[Problem], vault: Vault) -> dict[str, Any]:
    """Return the document of a review that could not start."""
    return {"schema": SCHEMA, "roles": {}, "problems": [problem_data(p, vault) for p in problems]}


def _review_data(review: JobReview) -> dict[str, Any]:
    roles: dict[str, dict[str, Any]] = {}
    for plan in review.plans:
        assert review.job is not None
        command = review.vault.text(user_command(review.job, plan.role))
        role = roles[plan.role.name] = {"user_command": command}
        if pod := _pod_data(review, review.pods.get(plan.role.name, NO_POD_SETTINGS)):
            role["pod"] = pod
        for phase, tasks in review.tasks[plan.role.name].items():
            role[phase] = [as_data(t, review.vault) for t in tasks]
    problems = [problem_data(p, review.vault) for p in review.problems]
    return {"roles": roles, "problems": problems}


def _pod_data(review: JobReview, pod: PodSettings) -> dict[str, Any]:
    """The settings of a role's Pods that the cluster or the job sets."""
    refused = pod.refused(review.problems)
    return {
        key: {
            "value": shown_data(node.plain(), review.vault),
            "layer": node.place.source.layer,
            "where": str(node.place),
            **({"refused": True} if key in refused else {}),
        }
        for key, node in pod.above("built-in").items()
    }


def as_data(reviewed: Reviewed, vault: Vault) -> dict[str, Any]:
    """A reviewed task as JSON data; secrets are masked."""
    task = reviewed.task
    out: dict[str, Any] = {
        "id": reviewed.id,
        "name": vault.text(reviewed.name),
        "module": reviewed.module,
        "layer": reviewed.layer,
        "where": reviewed.where,
        "verdict": reviewed.verdict.kind,
        "because": vault.text(reviewed.verdict.because),
    }
    if reviewed.verdict.does:
        out["does"] = reviewed.verdict.does
    if reviewed.disabled:
        out["disabled"] = reviewed.disabled
    if reviewed.group:
        out["parallel"] = vault.text(reviewed.group)
    if task is not None:
        out |= _task_data(task, vault)
    if reviewed.overrides:
        out["overrides"] = [override_data(o, vault) for o in reviewed.overrides]
    if reviewed.origins is not None:
        sources = [source_data(*each, vault) for each in sources_of(reviewed.origins)]
        out |= {"sources": sources} if sources else {}
    return out


def first_roles(review: JobReview) -> dict[tuple[str, Phase, int], str]:
    """For each role, phase and number of a task, the first role that has the same task."""
    first: dict[tuple[Phase, str], str] = {}
    roles: dict[tuple[str, Phase, int], str] = {}
    for role, phases in review.tasks.items():
        for phase, tasks in phases.items():
            for at, task in enumerate(tasks):
                data = json.dumps({**as_data(task, review.vault), "where": ""}, sort_keys=True)
                roles[role, phase, at] = first.setdefault((phase, data), role)
    return roles


def _task_data(task: Task, vault: Vault) -> dict[str, Any]:
    out: dict[str, Any] = {"args": shown_data(task.args, vault)}
    for name, value in keyword_values(task).items():
        if not is_unset(value):
            out[name] = shown_data(value, vault)
    if task.on_exit:
        out["on_exit"] = [
            {
                "id": h.id, "name": vault.text(h.title), "module": h.module,
                "event": list(h.events), **_task_data(h, vault),
            }
            for h in task.on_exit
        ]  # fmt: skip
    return out
