"""What every view of a review shows of its roles, and a review as JSON data; secrets are masked."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from pairun.errors import Problem
from pairun.job.planning import RolePlan
from pairun.job.templates import user_command
from pairun.module import Phase
from pairun.playbook.drafts import Setter, history, setter_of
from pairun.playbook.podfragment import NO_POD_SETTINGS
from pairun.report.problems import problem_data
from pairun.report.shown import setter_data, shown_setter
from pairun.report.task_view import TaskView, view_of
from pairun.review.jobreview import JobReview
from pairun.secrets.vault import Vault

_SCHEMA = 1


@attrs.frozen(kw_only=True)
class RoleView:
    """What the views of a review show of a role.

    Attributes:
        plan: its plan.
        image: the image's uri.
        pod: the settings of its Pods that the cluster or the job sets, in their JSON form.
        phases: its tasks.
    """

    plan: RolePlan
    image: str
    pod: Mapping[str, Mapping[str, Any]]
    phases: Mapping[Phase, Sequence[TaskView]]


def role_views(review: JobReview) -> list[RoleView]:
    """The roles of a review; a task that an earlier role has, too, names that role."""
    first: dict[tuple[Phase, str], str] = {}

    def views(role: str, phase: Phase) -> Iterator[TaskView]:
        for view in (view_of(task, review.vault) for task in review.tasks[role][phase]):
            key = phase, json.dumps({**view.data, "where": ""}, sort_keys=True)
            same_as = first.setdefault(key, role)
            yield attrs.evolve(view, same_as=same_as) if same_as != role else view

    roles = []
    for plan in review.plans:
        name, image = plan.role.name, plan.role.image.node.get("uri")
        roles.append(
            RoleView(
                plan=plan,
                image=review.vault.text(str(image.value)) if image else "",
                pod=dict(_pod_settings(review, name)),
                phases={phase: list(views(name, phase)) for phase in review.tasks[name]},
            )
        )
    return roles


def _pod_settings(review: JobReview, role: str) -> Iterator[tuple[str, dict[str, Any]]]:
    pod = review.pods.get(role, NO_POD_SETTINGS)
    refused = pod.refused(review.problems)
    for key, node in pod.above("built-in").items():
        value, *before = (setter_data(setter_of(n), key, review.vault) for n in history(node))
        refusal = {"refused": True} if key in refused else {}
        yield key, {**value, **refusal, **({"was": before[0]} if before else {})}


def setting_line(path: str, setter: Setter, vault: Vault) -> str:
    """A value of a setting, masked, and who set it.

    Args:
        path: of the setting, such as ``git.args.depth``.
        setter: the value, with its layer and place.
        vault: masks it.
    """
    value = json.dumps(shown_setter(setter, path, vault), ensure_ascii=False)
    source = f", {setter.source}" if setter.source else ""
    return f"{value}  ← {setter.layer} {setter.where}{source}"


def reviews_data(reviews: Sequence[JobReview]) -> dict[str, Any]:
    """Return the document of one review, or of several, by file."""
    documents = {r.path: _review_data(r) for r in reviews}
    if len(documents) == 1:
        return {"schema": _SCHEMA, **next(iter(documents.values()))}
    return {"schema": _SCHEMA, "jobs": documents}


def refused_data(problems: Sequence[Problem], vault: Vault) -> dict[str, Any]:
    """Return the document of a review that could not start."""
    return {"schema": _SCHEMA, "roles": {}, "problems": [problem_data(p, vault) for p in problems]}


def _review_data(review: JobReview) -> dict[str, Any]:
    roles: dict[str, dict[str, Any]] = {}
    for each in role_views(review):
        assert review.job is not None
        command = review.vault.text(user_command(review.job, each.plan.role))
        role = roles[each.plan.role.name] = {"user_command": command}
        if each.pod:
            role["pod"] = each.pod
        role |= {phase: [t.data for t in tasks] for phase, tasks in each.phases.items()}
    problems = [problem_data(p, review.vault) for p in review.problems]
    return {"roles": roles, "problems": problems}
