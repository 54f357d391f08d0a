"""What a role's ``resourcePerInstance`` and ``extraContainerOptions`` request for its Pods."""

from __future__ import annotations

from pairun.job.model import Role
from pairun.playbook.document.reading import Node

GPU_RESOURCE = "nvidia.com/gpu"
"""The resource name of a GPU in most clusters."""


def asked(role: Role, gpu_resource: str) -> Node:
    """What a role requests, as Pod settings.

    Args:
        gpu_resource: the cluster's resource name of a GPU.

    Returns:
        The limits of the user's container and ``shm``, each with its line of the job, in the form of
        `pairun.playbook.podfragment.by_name`. Zero sets no limit.
    """
    own = role.resources
    per_instance = role.node.get("resourcePerInstance") or role.node
    options = role.node.get("extraContainerOptions") or role.node
    amounts = [
        ("cpu", own.cpu, per_instance.get("cpu")),
        ("memory", f"{own.memory_mb}Mi" if own.memory_mb else 0, per_instance.get("memoryMB")),
        (gpu_resource, own.gpu, per_instance.get("gpu")),
        ("rdma/hca", int(own.infiniband), options.get("infiniband")),
    ]
    made = Node(
        {n: _at(v, node or per_instance) for n, v, node in amounts if v}, per_instance.place
    )
    for key in ("limits", "resources", "app", "containers", "spec"):
        made = Node({key: made}, per_instance.place, per_instance.key)
    if own.shm_mb:
        made.value["shm"] = _at(f"{own.shm_mb}Mi", options.get("shmMB") or options)
    return made


def _at(value: object, node: Node) -> Node:
    return Node(value, node.place, node.key)
