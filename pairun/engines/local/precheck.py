"""Checks a job before any instance of it starts on this machine."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

from pairun.engines.local.activities import RoleLimits
from pairun.engines.local.jobrun import LAYER, RunOptions, base_environment, engine_environment
from pairun.errors import Problem, Problems
from pairun.job.model import Job
from pairun.job.planning import RUNTIME_ENV_UNKNOWN, plan_role, secrets_of
from pairun.openpai.platform import platform_environment
from pairun.playbook.content import open_content
from pairun.playbook.document.reading import read_file
from pairun.playbook.effective import Layers
from pairun.report.live.instancenow import TaskLimits
from pairun.secrets.vault import Vault


class _Checked(NamedTuple):
    """A job that can run.

    Attributes:
        warnings: the warnings of its plans.
        limits: the time limits of its tasks.
    """

    warnings: Sequence[Problem]
    limits: RoleLimits


def check(job: Job, options: RunOptions, vault: Vault) -> _Checked:
    """Make the plans of every role as its instances will make them.

    Raises:
        PairunError: all errors of the plans.
    """
    problems = Problems()
    layers = Layers(open_content(options.roots, os.environ))
    engine = engine_environment(options, gang="")
    limits: dict[str, dict[str, TaskLimits]] = {}
    vault.add(secrets_of(job))
    for role in job.roles:
        init, _ = platform_environment(job, role, 0, pod_uid="")
        plans = plan_role(
            layers,
            job,
            role,
            env={
                "init": {**base_environment(), **init, **engine},
                "runtime": RUNTIME_ENV_UNKNOWN,
            },
            engine=read_file(LAYER, "engine"),
            vault=vault,
            problems=problems,
        ).plans.values()
        limits[role.name] = {
            task.id: TaskLimits(attempt_s=task.timeout_s, task_s=task.deadline_s)
            for plan in plans
            for begun in plan.tasks()
            for task in (begun, *begun.on_exit)
        }
    problems.raise_errors()
    return _Checked(list(problems), limits)
