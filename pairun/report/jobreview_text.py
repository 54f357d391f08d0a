"""The review of a job as text for people."""

from __future__ import annotations

import json
from typing import IO, Any

from pairun.errors import Place
from pairun.job.model import Role
from pairun.playbook.content import Content
from pairun.report.jobreview_brief import Brief
from pairun.report.review_data import as_data
from pairun.report.review_text import ReviewText, roots_line, summary
from pairun.report.shown import shown_data
from pairun.review.jobreview import JobReview
from pairun.secrets.shapes import with_secrets
from pairun.secrets.vault import Vault


def print_review(review: JobReview, content: Content, stream: IO[str], *, full: bool) -> None:
    """Print the review of a job or of a plain Pod.

    Args:
        review: the review.
        content: the content roots, for the first line.
        stream: the stream to print to.
        full: print every task with every value; else a line per task, important tasks first.
    """
    text = ReviewText(stream, review.vault)
    _print_roots(text, content)
    if review.job is None:
        text.wrapped(f"{review.path} is not valid")
        return
    if (listed := review.settings.init_plugins) is not None:
        text.wrapped(f"init plugins: {listed.place.source.file}", hang="  ")
    if review.settings.plain:
        _print_pod(text, review, full=full)
    else:
        _print_job(text, review, full=full)


def _print_roots(text: ReviewText, content: Content) -> None:
    text.wrapped(roots_line(content), hang="  ")
    if all(r.layer == "built-in" for r in content.roots):
        text.line("add your cluster's defaults with --root DIR")


def _print_job(text: ReviewText, review: JobReview, *, full: bool) -> None:
    job = review.job
    assert job is not None
    count = sum(r.instances for r in job.roles)
    text.wrapped(
        f"job {job.name} of {job.user} · {_counted(len(job.roles), 'role')}, "
        f"{_counted(count, 'instance')} · {review.path}",
        hang="  ",
    )
    brief = Brief(text, review)
    printed: dict[tuple[str, str], str] = {}
    for plan in review.plans:
        _print_role(text, plan.role, full=full)
        _print_pod_settings(text, review, plan.role.name)
        if not full:
            brief.role(plan.role.name, review.tasks[plan.role.name])
            continue
        for phase, tasks in review.tasks[plan.role.name].items():
            shown = json.dumps([{**as_data(t, review.vault), "where": ""} for t in tasks])
            first = printed.setdefault((phase, shown), plan.role.name)
            if first != plan.role.name:
                text.phase(f"{phase}: as in role {first}", [])
            else:
                text.phase(phase, tasks)
    _print_count(text, review, None if full else brief)


def _print_count(text: ReviewText, review: JobReview, brief: Brief | None) -> None:
    if brief is not None:
        brief.reasons()
    text.line()
    if brief is not None:
        text.line("every value: --full; who set one: --why ID.KEY")
    tasks = {f"{n}/{p}": t for n, phases in review.tasks.items() for p, t in phases.items()}
    text.wrapped(summary(tasks), hang="  ")


def _print_role(text: ReviewText, role: Role, *, full: bool) -> None:
    """Print the settings of a role that only the platform reads."""
    text.line()
    image = role.image.node.get("uri")
    asked = role.resources
    whose = f"{_counted(role.instances, 'instance')} · image {image.value if image else '?'}"
    amounts = f"cpu {asked.cpu}, memory {asked.memory_mb} MB, gpu {asked.gpu}"
    text.wrapped(f"role {role.name} · {whose}" + ("" if full else f" · {amounts}"), hang="  ")
    if not full:
        return
    ports = ", ".join(f"{label} {count}" for label, count in asked.ports.items())
    text.wrapped(f"  {amounts}" + (f", ports: {ports}" if ports else ""), hang="    ")
    text.wrapped(f"  the job completes when {_completion(role)}", hang="    ")


def _print_pod_settings(text: ReviewText, review: JobReview, role: str) -> None:
    """Print the Pod settings that the cluster or the job sets."""
    pod, vault = review.pods[role], review.vault
    refused = pod.refused(review.problems)
    for key, node in pod.above("built-in").items():
        path = f"pod.{key}"
        line = setting_line(path, node.plain(), node.place, vault)
        if key in refused:
            line += ", refused"
        if (before := node.overrides) is not None:
            was = json.dumps(shown_data(before.plain(), vault), ensure_ascii=False)
            line += f", was {was} ({before.place.source.layer} {before.place})"
        text.wrapped(f"  {path} = {line}", hang="    ")


def _completion(role: Role) -> str:
    conditions = []
    if role.min_failed > 0:
        conditions.append(_counted(role.min_failed, "instance") + _verb(role.min_failed, "fail"))
    if role.min_succeeded > 0:
        count = str(role.min_succeeded) if conditions else _counted(role.min_succeeded, "instance")
        conditions.append(count + _verb(role.min_succeeded, "succeed"))
    return " or ".join(conditions) or "every instance has ended"


def _verb(count: int, verb: str) -> str:
    return f" {verb}{'s' if count == 1 else ''}"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' if count > 1 else ''}"


def _print_pod(text: ReviewText, review: JobReview, *, full: bool) -> None:
    size = sum(role.instances for role in review.job.roles) if review.job else 1
    instances = "one instance" if size == 1 else f"one of {size} in the gang"
    text.wrapped(f"a plain Pod, no job of OpenPAI: {instances} · {review.path}", hang="  ")
    brief = Brief(text, review)
    for role, phases in review.tasks.items():
        text.line()
        if not full:
            brief.role(role, phases)
            continue
        for phase, tasks in phases.items():
            text.phase(phase, tasks)
    _print_count(text, review, None if full else brief)


def setting_line(path: str, value: Any, place: Place, vault: Vault) -> str:
    """A value of a setting, masked, and who set it.

    Args:
        path: of the setting, such as ``git.args.depth``.
        value: the value.
        place: where it is set.
        vault: masks it.
    """
    # A key such as password masks its whole value, even one that is too short for the vault.
    shown = shown_data(with_secrets(value, path.rpartition(".")[2]), vault)
    return f"{json.dumps(shown, ensure_ascii=False)}  ← {place.source.layer} {place}"
