"""A review as JSON data, with its secrets masked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pairun.errors import Problem
from pairun.job.templates import user_command
from pairun.module import format_duration
from pairun.plan import Task
from pairun.playbook.podfragment import NO_POD_SETTINGS, PodSettings
from pairun.report.problems import problem_data
from pairun.report.shown import override_data, shown_data
from pairun.review.jobreview import JobReview
from pairun.review.taskreview import Reviewed
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
    if reviewed.disabled:
        out["disabled"] = reviewed.disabled
    if reviewed.group:
        out["parallel"] = vault.text(reviewed.group)
    if task is not None:
        out |= _task_data(task, vault)
    if reviewed.overrides:
        out["overrides"] = [override_data(o, vault) for o in reviewed.overrides]
    return out


def _task_data(task: Task, vault: Vault) -> dict[str, Any]:
    out: dict[str, Any] = {"args": shown_data(task.args, vault)}
    if task.when is not True:
        out["when"] = shown_data(task.when, vault)
    if task.environment:
        out["environment"] = shown_data(task.environment, vault)
    out["retries"] = task.retries
    if task.retries:
        out["delay"] = format_duration(task.delay_s)
        out["retry_on"] = list(task.retry_on)
    for name, seconds in (("timeout", task.timeout_s), ("deadline", task.deadline_s)):
        if seconds is not None:
            out[name] = format_duration(seconds)
    out["failure_policy"] = task.failure_policy
    if task.run_on != "all":
        out["run_on"] = task.run_on
    if task.exit_codes:
        out["exit_codes"] = dict(task.exit_codes)
    if task.on_exit:
        out["on_exit"] = [
            {
                "id": h.id, "name": vault.text(h.name), "module": h.module,
                "event": list(h.events), **_task_data(h, vault),
            }
            for h in task.on_exit
        ]  # fmt: skip
    return out
