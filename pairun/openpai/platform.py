"""The variables that OpenPAI's REST server and FrameworkController set in both containers."""

from __future__ import annotations

import uuid

from pairun.job.model import Job, Role
from pairun.job.templates import user_command

Environment = dict[str, str]


def framework_environment(job: Job) -> Environment:
    """The job's variables in every task, in the REST server's order."""
    roles = job.roles
    tasks = str(sum(role.instances for role in roles))
    count, names = str(len(roles)), ",".join(role.name for role in roles)
    out = {
        "PAI_FRAMEWORK_NAME": job.framework_name,
        "PAI_JOB_NAME": job.framework_name,
        "PAI_USER_NAME": job.user,
        "PAI_DEFAULT_FS_URI": "",
        "PAI_TASK_ROLE_COUNT": count,
        "PAI_TASK_ROLE_LIST": names,
        "PAI_VIRTUAL_CLUSTER": job.virtual_cluster,
    }
    for role in roles:
        asked = role.resources
        resources = (asked.gpu, asked.cpu, asked.memory_mb, asked.shm_mb or 0)
        out[f"PAI_TASK_ROLE_TASK_COUNT_{role.name}"] = str(role.instances)
        out[f"PAI_RESOURCE_{role.name}"] = ",".join(map(str, resources))
        out[f"PAI_MIN_FAILED_TASK_COUNT_{role.name}"] = str(role.min_failed)
        out[f"PAI_MIN_SUCCEEDED_TASK_COUNT_{role.name}"] = str(role.min_succeeded)
    # Names from before the protocol had versions.
    return out | {
        "PAI_USERNAME": job.user,
        "PAI_TASKS_NUM": tasks,
        "PAI_JOB_TASK_COUNT": tasks,
        "PAI_TASK_ROLES_NUM": count,
        "PAI_JOB_TASK_ROLE_COUNT": count,
        "PAI_JOB_TASK_ROLE_LIST": names,
    }


def init_variables(job: Job, role: Role) -> Environment:
    """The variables that the REST server sets only in the init container."""
    return {
        "USER_CMD": user_command(job, role),
        "KUBE_APISERVER_ADDRESS": "",
        "GANG_ALLOCATION": "true" if job.gang else "false",
        "REST_SERVER_URI": "",
    }


def app_variables(role: Role) -> Environment:
    """The variables that the REST server sets only in the user's container, except the index."""
    # Without it, the NVIDIA container runtime exposes all GPUs to images that request them.
    return {} if role.resources.gpu else {"NVIDIA_VISIBLE_DEVICES": "none"}


def platform_environment(
    job: Job, role: Role, index: int, *, pod_uid: str
) -> tuple[Environment, Environment]:
    """The environment of a task's two containers, as a cluster would set it."""
    shared = framework_environment(job)
    init, app = instance_environment(job, role, index, pod_uid=pod_uid)
    return shared | init, shared | app


def instance_environment(
    job: Job, role: Role, index: int, *, pod_uid: str
) -> tuple[Environment, Environment]:
    """The environment of a task's two containers, without `framework_environment`.

    Returns:
        The variables of the init container, and those of the user's.
    """
    controller = _controller_variables(job, role, index, pod_uid)
    shared = {
        "PAI_CURRENT_TASK_ROLE_NAME": role.name,
        "PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX": str(index),
    }
    init = init_variables(job, role)
    app = app_variables(role) | {"PAI_TASK_INDEX": str(index)}
    return controller | init | shared, controller | shared | app


def _controller_variables(job: Job, role: Role, index: int, pod_uid: str) -> Environment:
    name = job.framework_id
    uid = _uid(name)
    config_map = _uid(uid, "configmap")
    return {
        "FC_FRAMEWORK_NAMESPACE": "default",
        "FC_FRAMEWORK_NAME": name,
        "FC_TASKROLE_NAME": role.fc_name,
        "FC_TASK_INDEX": str(index),
        "FC_CONFIGMAP_NAME": f"{name}-attempt",
        "FC_POD_NAME": f"{name}-{role.fc_name}-{index}",
        "FC_FRAMEWORK_UID": uid,
        "FC_FRAMEWORK_ATTEMPT_ID": "0",
        "FC_FRAMEWORK_ATTEMPT_INSTANCE_UID": f"0_{config_map}",
        "FC_CONFIGMAP_UID": config_map,
        "FC_TASKROLE_UID": _uid(uid, role.fc_name),
        "FC_TASK_UID": _uid(uid, role.fc_name, str(index)),
        "FC_TASK_ATTEMPT_ID": "0",
        "FC_POD_UID": pod_uid,
        "FC_TASK_ATTEMPT_INSTANCE_UID": f"0_{pod_uid}",
    }


def _uid(*parts: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_OID, "/".join(parts)))
