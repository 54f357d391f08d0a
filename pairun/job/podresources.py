"""What a role's ``resourcePerInstance`` and ``extraContainerOptions`` request for its Pods."""

from __future__ import annotations

from pairun.job.model import Role
from pairun.playbook.document.reading import Node

GPU_RESOURCE = "nvidia.com/gpu"
"""The resource name of a GPU in most clusters."""


def asked(role: Role, gpu_resource: str) -> dict[str, Node]:
    """What a role requests, by the keys and in the form of the settings that override it.

    Args:
        role: the role.
        gpu_resource: the cluster's resource name of a GPU.

    Returns:
        ``resources.limits`` and ``shm``, each value with its line of the job. Zero sets no limit.
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
    limits = {name: _at(value, node or per_instance) for name, value, node in amounts if value}
    settings = {"resources.limits": Node(limits, per_instance.place, per_instance.key)}
    if own.shm_mb:
        settings["shm"] = _at(f"{own.shm_mb}Mi", options.get("shmMB") or options)
    return settings


def _at(value: object, node: Node) -> Node:
    return Node(value, node.place, node.key)
