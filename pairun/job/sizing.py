"""Selects roles of a job, and changes their numbers of instances."""

from __future__ import annotations

import re
from collections.abc import Sequence

import attrs

from pairun.errors import Problems, did_you_mean
from pairun.job.model import Job, Role


def resized(job: Job, roles: Sequence[str], instances: Sequence[str]) -> Job:
    """The job with these roles and numbers of instances.

    Args:
        job: the whole job.
        roles: names of the roles to keep; empty keeps all.
        instances: ``N`` for every role, or ``ROLE=N``.

    Raises:
        PairunError: the role does not exist, or N is not a number from 1 to 999999.
    """
    problems = Problems()
    kept = [_role(job, name, problems) for name in roles] or list(job.roles)
    counts = _counts(job, instances, problems)
    problems.raise_errors()
    return attrs.evolve(
        job,
        roles=tuple(
            _with_instances(r, counts.get(r.name, r.instances)) for r in job.roles if r in kept
        ),
    )


def _counts(job: Job, instances: Sequence[str], problems: Problems) -> dict[str, int]:
    counts: dict[str, int] = {}
    for text in instances:
        name, _, number = text.rpartition("=")
        role = _role(job, name, problems) if name else None
        if not re.fullmatch("0*[1-9][0-9]{0,5}", number):
            problems.error("PR801", f"--instances {text}: N must be a number from 1 to 999999")
            continue
        for each in job.roles if not name else [role] if role else []:
            counts[each.name] = int(number)
    return counts


def _role(job: Job, name: str, problems: Problems) -> Role | None:
    role = job.role(name)
    if role is None:
        hint = did_you_mean(name, [r.name for r in job.roles])
        problems.error("PR509", f"there is no role '{name}'", hint=hint)
    return role


def _with_instances(role: Role, instances: int) -> Role:
    """A role with another number of instances; a limit equal to the old number changes with it."""
    return attrs.evolve(
        role,
        instances=instances,
        min_failed=min(role.min_failed, instances),
        min_succeeded=instances
        if role.min_succeeded == role.instances
        else min(role.min_succeeded, instances),
    )
