"""The tasks of a job in the cluster, with their Pods, hosts and ports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from pairun.errors import PairunError
from pairun.kube.ports import PORT_ANNOTATION, PortPlan
from pairun.kube.statuses import task_statuses


@attrs.frozen(kw_only=True)
class ClusterInstance:
    """One task.

    Attributes:
        index: its number in its role.
        pod_uid: its Pod's UID; None before it has a Pod.
        host_ip: its host's address; None while unknown.
        ports: label to numbers, in the annotation's order; empty while unknown.
    """

    index: int
    pod_uid: str | None
    host_ip: str | None
    ports: Mapping[str, tuple[int, ...]]

    @property
    def is_placed(self) -> bool:
        """Whether its ports are final: it has a Pod, or its ports do not depend on one."""
        return bool(self.pod_uid or self.ports)

    def first_port(self, label: str) -> str:
        """The first port of a label as text; empty if there is none."""
        numbers = self.ports.get(label, ())
        return str(numbers[0]) if numbers else ""


@attrs.frozen(kw_only=True)
class ClusterRole:
    """The tasks of one role, with its name in the job and in the Pods."""

    name: str
    fc_name: str
    instances: tuple[ClusterInstance, ...]


@attrs.frozen(kw_only=True)
class JobCluster:
    """All tasks of a job, as one of them sees them.

    Attributes:
        roles: in the order of the Framework's status.
        own_role: sanitised name of this task's role.
        own_index: this task's number.
    """

    roles: tuple[ClusterRole, ...]
    own_role: str
    own_index: int

    def is_own(self, role: ClusterRole, instance: ClusterInstance) -> bool:
        """Whether an instance is this task."""
        return role.fc_name == self.own_role and instance.index == self.own_index

    @property
    def own(self) -> ClusterInstance | None:
        """This task; None if it is missing in the Framework's status."""
        return next((i for r in self.roles for i in r.instances if self.is_own(r, i)), None)


def cluster_from_framework(
    framework: Mapping[str, Any],
    own_role: str,
    own_index: int,
    raw_names: Mapping[str, str],
    *,
    own_pod_uid: str | None = None,
    own_host_ip: str | None = None,
) -> JobCluster:
    """Read the cluster from a Framework object.

    Args:
        framework: the object; its task statuses may be compressed.
        own_role: sanitised name of this task's role.
        own_index: this task's number.
        raw_names: sanitised role name to the name in the job, if they differ.
        own_pod_uid: this Pod's UID, in case the status lacks it.

    Raises:
        PairunError: the Framework has no task statuses yet, or is invalid.
    """
    listed = _part(_part(framework, "spec", dict), "taskRoles", list, "spec")
    statuses = _statuses(framework)
    try:
        plans = {
            role["name"]: _port_plan(
                role["task"]["pod"]["metadata"].get("annotations", {}).get(PORT_ANNOTATION, "{}")
            )
            for role in listed
        }
        roles = []
        for status in statuses:
            name = status["name"]
            if name not in plans:
                continue  # a role that was removed when the job was scaled down
            instances = []
            for task in status["taskStatuses"]:
                index, attempt = int(task["index"]), task.get("attemptStatus") or {}
                pod_uid, host_ip = attempt.get("podUID") or None, attempt.get("podHostIP") or None
                if name == own_role and index == own_index:
                    pod_uid, host_ip = pod_uid or own_pod_uid, host_ip or own_host_ip
                ports = plans[name].of(pod_uid, index)
                instances.append(
                    ClusterInstance(index=index, pod_uid=pod_uid, host_ip=host_ip, ports=ports)
                )
            raw = raw_names.get(name, name)
            roles.append(ClusterRole(name=raw, fc_name=name, instances=tuple(instances)))
    except KeyError as e:
        message = f"the Framework object is incomplete: a role or a task has no {e}"
        raise _unusable(message, _INCOMPLETE) from e
    except (TypeError, AttributeError, ValueError) as e:
        message = (
            f"the Framework object is invalid: a part of a role or task has a wrong type ({e})"
        )
        raise _unusable(message, _INCOMPLETE) from e
    return JobCluster(roles=tuple(roles), own_role=own_role, own_index=own_index)


def _port_plan(annotation: str) -> PortPlan:
    try:
        return PortPlan(annotation)
    except ValueError as e:
        raise _unusable(str(e)) from e


def _statuses(framework: Mapping[str, Any]) -> list[dict[str, Any]]:
    try:
        statuses = task_statuses(framework)
    except ValueError as e:
        raise _unusable(str(e), _INCOMPLETE) from e
    if not statuses:
        raise _unusable("the Framework has no task statuses yet")
    return statuses


_INCOMPLETE = "check that the file is complete: kubectl get framework NAME -o json > FILE"


def _part(owner: Mapping[str, Any], name: str, kind: type, path: str = "") -> Any:
    """A part of the Framework; it must have this type."""
    part = owner.get(name)
    if not isinstance(part, kind):
        word = "a mapping" if kind is dict else "a list"
        wrong = "is missing" if part is None else f"must be {word}"
        raise _unusable(f"the Framework's '{path and path + '.'}{name}' {wrong}", _INCOMPLETE)
    return part


def _unusable(message: str, hint: str | None = None) -> PairunError:
    return PairunError.of("PR704", message, hint=hint)


def cluster_summary(cluster: JobCluster) -> dict[str, Any]:
    """The content of ``cluster.json``: the same facts as the environment, as plain data."""
    return {
        "schema": 1,
        "own": {"role": cluster.own_role, "index": cluster.own_index},
        "roles": [
            {
                "name": role.name,
                "fc_name": role.fc_name,
                "instances": [
                    {
                        "index": i.index,
                        "pod_uid": i.pod_uid,
                        "host_ip": i.host_ip,
                        "ports": {label: list(numbers) for label, numbers in i.ports.items()},
                    }
                    for i in role.instances
                ],
            }
            for role in cluster.roles
        ],
    }
