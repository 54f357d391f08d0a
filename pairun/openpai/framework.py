"""The Framework object: how the cluster stores a job, and how pairun reads it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pairun.errors import Problems
from pairun.formats.jsyaml import JS
from pairun.formats.stored import API_VERSION, job_source, job_text, user_of
from pairun.job.hiding import mask_secrets
from pairun.job.jobfile import read_job
from pairun.job.model import Job, Role
from pairun.kube.ports import DEFAULT_RANGE
from pairun.openpai.podtemplate import PodMaker
from pairun.playbook.document.reading import Node, read_text
from pairun.playbook.document.scalars import Dialect

__all__ = [
    "API_VERSION",
    "job_from_framework",
    "job_text",
    "make_framework",
    "with_statuses",
]

GRACEFUL_DELETION_S = 600

Object = dict[str, Any]


def make_framework(
    job: Job,
    *,
    framework_name: str | None = None,
    ports: tuple[int, int] = DEFAULT_RANGE,
    runtime_image: str = "",
    apiserver: str = "",
    rest_server: str = "",
) -> Object:
    """The Framework that OpenPAI's REST server makes of a job, without status.

    Args:
        job: the job.
        framework_name: the object's name; made of user and job name by default.
        ports: the half-open range that ports are taken from.
        runtime_image: of the init container.
        apiserver: address of the API server, for the init container.
        rest_server: address of OpenPAI's REST server, likewise.
    """
    name = framework_name or job.framework_id
    gpus = sum(role.resources.gpu * role.instances for role in job.roles)
    pod = PodMaker(job, name, ports, runtime_image, apiserver, rest_server)
    return {
        "apiVersion": API_VERSION,
        "kind": "Framework",
        "metadata": {
            "name": name,
            "namespace": "default",
            "labels": {"userName": job.user, "virtualCluster": job.virtual_cluster},
            "annotations": {
                "jobName": job.name,
                "logPathInfix": name,
                "config": mask_secrets(job.text),
                "totalGpuNumber": str(gpus),
            },
        },
        "spec": {
            "executionType": "Start",
            "retryPolicy": {"fancyRetryPolicy": True, "maxRetryCount": job.retry_count},
            "taskRoles": [_task_role(job, role, pod.make(role)) for role in job.roles],
        },
    }


def _task_role(job: Job, role: Role, pod: Object) -> Object:
    retries = 0 if job.gang else role.retry_count or 0
    return {
        "name": role.fc_name,
        "taskNumber": role.instances,
        "frameworkAttemptCompletionPolicy": {
            "minFailedTaskCount": role.min_failed,
            "minSucceededTaskCount": role.min_succeeded,
        },
        "task": {
            "retryPolicy": {"fancyRetryPolicy": not job.gang, "maxRetryCount": retries},
            "podGracefulDeletionTimeoutSec": GRACEFUL_DELETION_S,
            "pod": pod,
        },
    }


def with_statuses(framework: Object, pods: Mapping[str, Sequence[Object | None]]) -> Object:
    """A copy of a Framework with the status that FrameworkController would give it.

    Args:
        framework: the object.
        pods: for each sanitised role name, for each task in order, what the status says of its
            Pod (``podUID``, ``podHostIP``, ``podIP``, ``podName``), or None while there is none.
    """
    roles = [
        {
            "name": name,
            "taskStatuses": [
                {"index": index, "attemptStatus": dict(pod or {"podUID": None, "podHostIP": None})}
                for index, pod in enumerate(tasks)
            ],
        }
        for name, tasks in pods.items()
    ]
    return {**framework, "status": {"attemptStatus": {"taskRoleStatuses": roles}}}


# --- reading it back ----------------------------------------------------------------------------


def job_from_framework(
    framework: Mapping[str, Any], secrets: Node | None = None, dialect: Dialect = JS
) -> tuple[Job | None, Problems]:
    """The job that a Framework carries.

    Args:
        framework: the object.
        secrets: the job's secrets, from the file that OpenPAI mounts into the Pod.
        dialect: what the cluster's REST server reads job files with.

    Returns:
        The job, or None when a problem is an error; and every problem found.

    Raises:
        PairunError: it carries no job, or one that cannot be read.
    """
    node = read_text(job_source(framework), dialect)
    return read_job(node, user=user_of(framework), stored=True, secrets=secrets, dialect=dialect)
