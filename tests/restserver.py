"""What OpenPAI's REST server creates in a cluster: the Framework of a job, with its Pod templates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from pairun.job.model import DEFAULT_SHM_MB, Job, Role
from pairun.kube.labels import CONFIG_SECRET, REGISTRY_SECRET
from pairun.kube.owners import Object
from pairun.kube.ports import DEFAULT_RANGE, PORT_ANNOTATION, port_annotation
from pairun.openpai.framework import make_framework
from pairun.openpai.platform import app_variables, framework_environment, init_variables


def framework_of(
    job: Job, name: str | None = None, ports: tuple[int, int] = DEFAULT_RANGE
) -> Object:
    """The Framework of a job, without status."""
    made = make_framework(job, framework_name=name, ports=ports)
    pods = PodMaker(job, made["metadata"]["name"], ports)
    for role, task in zip(job.roles, made["spec"]["taskRoles"], strict=True):
        task["task"]["pod"] = pods.make(role)
    return made


class PodMaker(NamedTuple):
    """Makes the Pod templates of a job's roles.

    Attributes:
        name: of the Framework.
        ports: the half-open range of ports to assign.
        image: of the init container.
    """

    job: Job
    name: str
    ports: tuple[int, int] = DEFAULT_RANGE
    image: str = ""

    def make(self, role: Role) -> Object:
        """The Pod template of a role."""
        job = self.job
        shared = [
            *_values(framework_environment(job)),
            {"name": "PAI_CURRENT_TASK_ROLE_NAME", "value": role.name},
            _index("PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX"),
        ]
        spec: Object = {
            "restartPolicy": "Never",
            "serviceAccountName": "runtime-account",
            "hostNetwork": True,
            "initContainers": [self._init(role, _values(init_variables(job, role)) + shared)],
            "containers": [self._app(role, [*shared, _index("PAI_TASK_INDEX")])],
            "volumes": self._volumes(role),
            "affinity": _WORKERS_ONLY,
            "priorityClassName": "pai-job-minimal-priority",
        }
        if role.image.node.get("auth") is not None:
            spec["imagePullSecrets"] = [{"name": f"{self.name}-{REGISTRY_SECRET}"}]
        return {
            "metadata": {
                "labels": {
                    "userName": job.user,
                    "virtualCluster": job.virtual_cluster,
                    "type": "kube-launcher-task",
                },
                "annotations": {
                    "container.apparmor.security.beta.kubernetes.io/app": "unconfined",
                    PORT_ANNOTATION: port_annotation(role.resources.ports, self.ports),
                },
            },
            "spec": spec,
        }

    def _init(self, role: Role, env: list[Object]) -> Object:
        return {
            "name": "init",
            "imagePullPolicy": "Always",
            "image": self.image,
            "env": env,
            "volumeMounts": [
                *self._shared_mounts(role),
                {"name": "job-exit-spec", "mountPath": "/usr/local/pai-config"},
            ],
        }

    def _app(self, role: Role, env: list[Object]) -> Object:
        asked, uri = role.resources, role.image.node.get("uri")
        limits: Object = {
            "cpu": asked.cpu,
            "memory": f"{asked.memory_mb}Mi",
            "github.com/fuse": 1,
            "nvidia.com/gpu": asked.gpu,
        }
        if asked.infiniband:
            limits["rdma/hca"] = 1
        return {
            "name": "app",
            "imagePullPolicy": "Always",
            "image": uri.value if uri else "",
            "command": ["/usr/local/pai/runtime"],
            "env": _values(app_variables(role)) + env,
            "resources": {"limits": limits},
            "securityContext": {
                "capabilities": {
                    "add": ["SYS_ADMIN", "IPC_LOCK", "DAC_READ_SEARCH"],
                    "drop": ["MKNOD"],
                }
            },
            "terminationMessagePath": "/tmp/pai-termination-log",
            "volumeMounts": [{"name": "dshm", "mountPath": "/dev/shm"}, *self._shared_mounts(role)],
        }

    def _shared_mounts(self, role: Role) -> list[Object]:
        mounts: list[Object] = [
            {"name": "pai-vol", "mountPath": "/usr/local/pai"},
            {
                "name": "host-log",
                "subPath": f"{self.job.user}/{self.name}/{role.fc_name}",
                "mountPath": "/usr/local/pai/logs",
            },
        ]
        if self.job.secrets is not None:
            mounts.append({"name": "job-secrets", "mountPath": "/usr/local/pai/secrets"})
        return mounts

    def _volumes(self, role: Role) -> list[Object]:
        size = f"{role.resources.shm_mb or DEFAULT_SHM_MB}Mi"
        volumes: list[Object] = [
            {"name": "dshm", "emptyDir": {"medium": "Memory", "sizeLimit": size}},
            {"name": "pai-vol", "emptyDir": {}},
            {"name": "host-log", "hostPath": {"path": "/var/log/pai"}},
            {"name": "job-exit-spec", "configMap": {"name": "runtime-exit-spec-configuration"}},
        ]
        if self.job.secrets is not None:
            secret = {"secretName": f"{self.name}-{CONFIG_SECRET}"}
            volumes.append({"name": "job-secrets", "secret": secret})
        return volumes


_WORKERS_ONLY: Object = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
                {"matchExpressions": [{"key": "pai-worker", "operator": "In", "values": ["true"]}]}
            ]
        }
    }
}


def _values(environment: Mapping[str, str]) -> list[Object]:
    return [{"name": name, "value": value} for name, value in environment.items()]


def _index(name: str) -> Object:
    path = "metadata.annotations['FC_TASK_INDEX']"
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}
