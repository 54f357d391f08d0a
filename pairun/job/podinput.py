"""What a Pod's init container finds: the Framework, the job in it, secrets, who it is itself."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

import attrs

from pairun.errors import PairunError, Problem, Problems, did_you_mean
from pairun.job.cluster import Cluster, cluster_from_framework
from pairun.job.framework import job_from_framework
from pairun.job.model import Job, Role, fc_name
from pairun.playbook.reading import Node, load_bytes, read_file


@attrs.frozen(kw_only=True)
class PodInput:
    """One instance of a job, seen from its Pod.

    Attributes:
        job: the job.
        role: the instance's role.
        index: its number within the role.
        user_extension: plain data of the mounted user extension, or None.
        command: the user's command as the platform rendered it, or None.
        problems: warnings that were found on the way.
    """

    job: Job
    role: Role
    index: int
    user_extension: Any
    command: str | None
    problems: Problems


def read_pod_input(pai_dir: str, env: Mapping[str, str]) -> PodInput:
    """Read the inputs of the init phase.

    Args:
        pai_dir: the shared volume, with the mounted secrets inside.
        env: ``PAIRUN_FRAMEWORK_FILE`` names a Framework object; ``FC_TASKROLE_NAME`` and
            ``FC_TASK_INDEX`` say which instance this is; ``USER_CMD`` is the rendered command.

    Raises:
        PairunError: something is missing or not valid; all of it.
    """
    missing = [
        n for n in ("PAIRUN_FRAMEWORK_FILE", "FC_TASKROLE_NAME", "FC_TASK_INDEX") if not env.get(n)
    ]
    if missing:
        raise PairunError(
            *(
                Problem(
                    "PR704",
                    f"the variable {name} is not set",
                    hint="pairun init runs where an engine starts it; on a laptop use `pairun run JOB`",
                )
                for name in missing
            )
        )
    framework = read_framework(env["PAIRUN_FRAMEWORK_FILE"])
    job, problems = job_from_framework(framework, _mounted(pai_dir, "secrets", "secrets.yaml"))
    if job is None:
        raise PairunError(*problems.errors)
    extension = _mounted(pai_dir, "user-extension-secrets", "userExtensionSecrets.yaml")
    return PodInput(
        job=job,
        role=_own_role(job, env["FC_TASKROLE_NAME"]),
        index=_own_index(env["FC_TASK_INDEX"]),
        user_extension=extension.plain() if extension else None,
        command=env.get("USER_CMD"),
        problems=problems,
    )


def read_framework(path: str) -> dict[str, Any]:
    """A Framework object from a JSON file.

    Raises:
        PairunError: it cannot be read.
    """
    try:
        framework = json.loads(load_bytes(path))
    except ValueError as e:
        raise PairunError(Problem("PR704", f"{path} is not a Framework object: {e}")) from e
    if not isinstance(framework, dict):
        raise PairunError(Problem("PR704", f"{path} is not a Framework object"))
    return framework


def read_cluster(pai_dir: str, env: Mapping[str, str], job: Job) -> Cluster:
    """Peers and ports, from the Framework that the barrier left on the volume.

    Raises:
        PairunError: it is not there, or not complete.
    """
    return cluster_from_framework(
        read_framework(os.path.join(pai_dir, "framework.json")),
        fc_name(env["FC_TASKROLE_NAME"]),
        _own_index(env["FC_TASK_INDEX"]),
        {r.fc_name: r.name for r in job.roles},
        own_pod_uid=env.get("FC_POD_UID"),
        own_host_ip=env.get("PAIRUN_HOST_IP"),
    )


def _mounted(pai_dir: str, folder: str, file: str) -> Node | None:
    path = os.path.join(pai_dir, folder, file)
    return read_file(path, "job", "js") if os.path.exists(path) else None


def _own_role(job: Job, name: str) -> Role:
    # The platform gives the sanitised name; a person may give the raw one.
    for role in job.roles:
        if name in (role.name, role.fc_name):
            return role
    raise PairunError(
        Problem(
            "PR509",
            f"FC_TASKROLE_NAME is '{name}', which is no role of this job",
            hint=did_you_mean(name, [r.fc_name for r in job.roles]),
        )
    )


def _own_index(text: str) -> int:
    if not text.isdigit():
        raise PairunError(Problem("PR704", f"FC_TASK_INDEX is '{text}', which is not a number"))
    return int(text)
