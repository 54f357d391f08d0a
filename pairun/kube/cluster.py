"""The tasks of a job as they are in the cluster: who, where, with which ports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from pairun.errors import PairunError, Problem
from pairun.kube.ports import PORT_ANNOTATION, PortPlan
from pairun.kube.statuses import task_statuses


@attrs.frozen(kw_only=True)
class Instance:
    """One task.

    Attributes:
        index: its number in its role.
        pod_uid: of its Pod, or None while there is none.
        host_ip: of its host, or None while it is not known.
        ports: label to numbers, in the annotation's order; empty while they are not known.
    """

    index: int
    pod_uid: str | None
    host_ip: str | None
    ports: Mapping[str, tuple[int, ...]]

    @property
    def is_placed(self) -> bool:
        """Whether its ports are final: it has a Pod, or ports that depend on none."""
        return bool(self.pod_uid or self.ports)

    def first_port(self, label: str) -> str:
        """The first port of a label as text; empty where there is none."""
        numbers = self.ports.get(label, ())
        return str(numbers[0]) if numbers else ""


@attrs.frozen(kw_only=True)
class ClusterRole:
    """The tasks of one role: its name as the job writes it, as the Pods bear it, its tasks."""

    name: str
    fc_name: str
    instances: tuple[Instance, ...]


@attrs.frozen(kw_only=True)
class Cluster:
    """All tasks of a job, seen from one of them.

    Attributes:
        roles: in the order of the Framework's status.
        own_role: sanitised name of this task's role.
        own_index: this task's number.
    """

    roles: tuple[ClusterRole, ...]
    own_role: str
    own_index: int

    def is_own(self, role: ClusterRole, instance: Instance) -> bool:
        """Whether an instance is this task."""
        return role.fc_name == self.own_role and instance.index == self.own_index

    @property
    def own(self) -> Instance | None:
        """This task, if the Framework's status has it."""
        return next((i for r in self.roles for i in r.instances if self.is_own(r, i)), None)


def cluster_from_framework(
    framework: Mapping[str, Any],
    own_role: str,
    own_index: int,
    raw_names: Mapping[str, str],
    *,
    own_pod_uid: str | None = None,
    own_host_ip: str | None = None,
) -> Cluster:
    """The cluster that a Framework object describes.

    Args:
        framework: the object; its task statuses may be compressed.
        own_role: sanitised name of this task's role.
        own_index: this task's number.
        raw_names: sanitised role name to the name in the job; a role that is missing has one name.
        own_pod_uid: of this Pod, for a status that does not have it yet.
        own_host_ip: of this host, likewise.

    Raises:
        PairunError: the Framework has no task statuses yet, or is not one.
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
                continue  # the job was scaled down and has this role no more
            instances = []
            for task in status["taskStatuses"]:
                index, attempt = int(task["index"]), task.get("attemptStatus") or {}
                pod_uid, host_ip = attempt.get("podUID") or None, attempt.get("podHostIP") or None
                if name == own_role and index == own_index:
                    pod_uid, host_ip = pod_uid or own_pod_uid, host_ip or own_host_ip
                ports = plans[name].of(pod_uid, index)
                instances.append(
                    Instance(index=index, pod_uid=pod_uid, host_ip=host_ip, ports=ports)
                )
            raw = raw_names.get(name, name)
            roles.append(ClusterRole(name=raw, fc_name=name, instances=tuple(instances)))
    except KeyError as e:
        message = f"the Framework object is not complete: a role or a task in it has no {e}"
        raise _unusable(message, _WHOLE) from e
    except (TypeError, AttributeError, ValueError) as e:
        message = "the Framework object is not as expected: a part of a role or task is of a wrong"
        raise _unusable(f"{message} kind ({e})", _WHOLE) from e
    return Cluster(roles=tuple(roles), own_role=own_role, own_index=own_index)


def _port_plan(annotation: str) -> PortPlan:
    try:
        return PortPlan(annotation)
    except ValueError as e:
        raise _unusable(str(e)) from e


def _statuses(framework: Mapping[str, Any]) -> list[dict[str, Any]]:
    try:
        statuses = task_statuses(framework)
    except ValueError as e:
        raise _unusable(str(e), _WHOLE) from e
    if not statuses:
        raise _unusable("the Framework has no task statuses yet")
    return statuses


_WHOLE = "was it saved whole? kubectl get framework NAME -o json > FILE"


def _part(owner: Mapping[str, Any], name: str, kind: type, path: str = "") -> Any:
    """A part of the Framework, which must be of a kind."""
    found = owner.get(name)
    if not isinstance(found, kind):
        word = "a mapping" if kind is dict else "a list"
        what = f"the Framework's '{path and path + '.'}{name}'"
        said = f"{what} must be {word}" if found is not None else f"{what} is missing"
        raise _unusable(said, _WHOLE)
    return found


def _unusable(message: str, hint: str | None = None) -> PairunError:
    return PairunError(Problem("PR704", message, hint=hint))


def cluster_summary(cluster: Cluster) -> dict[str, Any]:
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
