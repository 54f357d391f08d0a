"""The variables that describe the peers for the user's command, in OpenPAI's order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from pairun.kube.cluster import ClusterInstance, ClusterRole, JobCluster, cluster_summary

Variable = tuple[str, str]


def runtime_environment(cluster: JobCluster) -> list[Variable]:
    """The variables of ``runtime_env.sh``, in the order in which OpenPAI's runtime writes them.

    The names of variables contain the roles' sanitised names. Users build them from
    ``PAI_CURRENT_TASK_ROLE_NAME``, which is the raw name. So if a role's two names differ, the same
    values follow at the end under the raw name; a cluster without raw names has no such aliases.
    """
    out: list[Variable] = []
    for role in cluster.roles:
        for instance in role.instances:
            out += _ports(role.fc_name, instance)
            out += _host(role.fc_name, instance)
            if cluster.is_own(role, instance):
                out += _own(instance)
        out.append(_host_list(role.fc_name, role))
    names = (f"{role.fc_name}:{i.index}" for role in cluster.roles for i in role.instances)
    out.append(("PAI_TASK_ROLE_INSTANCES", ",".join(names)))
    taken = {name for name, _ in out}
    return out + [alias for alias in _aliases(cluster) if alias[0] not in taken]


def _joined(numbers: Iterable[int]) -> str:
    return ",".join(map(str, numbers))


def _ports(role: str, instance: ClusterInstance) -> Iterator[Variable]:
    for label, numbers in instance.ports.items():
        text = _joined(numbers)
        yield f"PAI_PORT_LIST_{role}_{instance.index}_{label}", text
        yield f"PAI_{role}_{instance.index}_{label}_PORT", text


def _host(role: str, instance: ClusterInstance) -> Iterator[Variable]:
    if instance.host_ip:
        yield f"PAI_HOST_IP_{role}_{instance.index}", instance.host_ip


def _host_list(name: str, role: ClusterRole) -> Variable:
    placed = (i for i in role.instances if i.host_ip and i.is_placed)
    hosts = (f"{i.host_ip}:{i.first_port('http')}" for i in placed)
    return f"PAI_TASK_ROLE_{name}_HOST_LIST", ",".join(hosts)


def _own(instance: ClusterInstance) -> Iterator[Variable]:
    http, lists = instance.first_port("http"), instance.ports.items()
    ip = instance.host_ip or ""
    variables = [
        ("PAI_CURRENT_CONTAINER_IP", ip),
        ("PAI_CURRENT_CONTAINER_PORT", http),
        ("PAI_CONTAINER_HOST_IP", ip),
        ("PAI_CONTAINER_HOST_PORT", http),
        ("PAI_CONTAINER_SSH_PORT", instance.first_port("ssh")),
        *((f"PAI_CONTAINER_HOST_{label}_PORT_LIST", _joined(n)) for label, n in lists),
        ("PAI_CONTAINER_HOST_PORT_LIST", "".join(f"{label}:{_joined(n)};" for label, n in lists)),
    ]
    # Omit unknown values: commands would rely on a made-up value.
    for name, value in variables:
        if ip if name.endswith("_IP") else instance.is_placed:
            yield name, value


def _aliases(cluster: JobCluster) -> Iterator[Variable]:
    for role in cluster.roles:
        if role.name != role.fc_name:
            for instance in role.instances:
                yield from _ports(role.name, instance)
                yield from _host(role.name, instance)
            yield _host_list(role.name, role)


def cluster_facts(cluster: JobCluster) -> dict[str, Any]:
    """The value of ``cluster`` in expressions once every peer has an address."""
    summary = cluster_summary(cluster)
    own_instances: list[dict[str, Any]] = next(
        (r["instances"] for r in summary["roles"] if r["fc_name"] == cluster.own_role), []
    )
    own: dict[str, Any] = next((i for i in own_instances if i["index"] == cluster.own_index), {})
    return {
        "environment": [list(pair) for pair in runtime_environment(cluster)],
        "summary": summary,
        "own": {**summary["own"], "host_ip": own.get("host_ip"), "ports": own.get("ports", {})},
        "roles": summary["roles"],
    }
