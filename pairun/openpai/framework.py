"""The Framework object: how the cluster stores a job. pairun writes and reads it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pairun.errors import Problems
from pairun.job.hiding import mask_secrets
from pairun.job.jobfile import read_job
from pairun.job.jsyaml import JS
from pairun.job.model import Job, Role
from pairun.job.stored import API_VERSION, job_source, job_text, user_of
from pairun.kube.owners import Object
from pairun.kube.ports import DEFAULT_RANGE, PORT_ANNOTATION, port_annotation
from pairun.playbook.document.reading import Node, read_text
from pairun.playbook.document.scalars import Dialect

__all__ = ["API_VERSION", "job_from_framework", "job_text", "make_framework", "with_statuses"]

GRACEFUL_DELETION_S = 600


def make_framework(
    job: Job, *, framework_name: str | None = None, ports: tuple[int, int] = DEFAULT_RANGE
) -> Object:
    """The Framework, without status, that OpenPAI's REST server makes from a job.

    Of its Pods it has only the ports: nothing else reads them from there.

    Args:
        framework_name: the object's name; default: made from user and job name.
        ports: the half-open range of ports to assign.
    """
    name = framework_name or job.framework_id
    gpus = sum(role.resources.gpu * role.instances for role in job.roles)
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
            "taskRoles": [_task_role(job, role, ports) for role in job.roles],
        },
    }


def _task_role(job: Job, role: Role, ports: tuple[int, int]) -> Object:
    annotations = {PORT_ANNOTATION: port_annotation(role.resources.ports, ports)}
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
            "pod": {"metadata": {"annotations": annotations}},
        },
    }


def with_statuses(framework: Object, pods: Mapping[str, Sequence[Object | None]]) -> Object:
    """A copy of a Framework with the status that FrameworkController would set.

    Args:
        pods: by sanitised role name, for each task in order, its Pod's status
            (``podUID``, ``podHostIP``, ``podIP``, ``podName``), or None without a Pod.
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
    """The job in a Framework.

    Args:
        secrets: the job's secrets, from the file that OpenPAI mounts into the Pod.
        dialect: the dialect in which the cluster's REST server reads job files.

    Returns:
        The job, or None if a problem is an error; and all problems.

    Raises:
        PairunError: it contains no job, or one that cannot be read.
    """
    node = read_text(job_source(framework), dialect)
    return read_job(node, user=user_of(framework), stored=True, secrets=secrets, dialect=dialect)
