"""The check of a job before any instance of it starts on this machine."""

from __future__ import annotations

import os

from pairun.engines.local.jobrun import LAYER, Options, base_environment, engine_environment
from pairun.errors import Problem, Problems
from pairun.job.model import Job
from pairun.job.planning import RUNTIME_ENV_UNKNOWN, plan_role
from pairun.openpai.platform import platform_environment
from pairun.playbook.content import open_content
from pairun.playbook.document.reading import read_file
from pairun.playbook.effective import Layers
from pairun.secrets.vault import Vault


def check(job: Job, options: Options, vault: Vault) -> list[Problem]:
    """Make the plans of every role as its instances will, before any of them starts.

    Returns:
        The warnings.

    Raises:
        PairunError: all errors.
    """
    problems = Problems()
    layers = Layers(open_content(options.roots, os.environ))
    engine = engine_environment(options, gang="")
    for role in job.roles:
        init, _ = platform_environment(job, role, 0, pod_uid="")
        plan_role(
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
        )
    problems.raise_errors()
    return list(problems)
