"""What a role's ``resourcePerInstance`` and ``extraContainerOptions`` ask of its Pods."""

from __future__ import annotations

from pairun.job.model import Role
from pairun.playbook.document.reading import Node

GPU_RESOURCE = "nvidia.com/gpu"
"""What most clusters call a GPU."""


def asked(role: Role, gpu_resource: str) -> dict[str, Node]:
    """What a role asks for, by the keys and in the form of the settings that replace it.

    Args:
        role: the role.
        gpu_resource: what the cluster calls a GPU.

    Returns:
        ``resources.limits`` and ``shm``, each value with its line of the job. Zero is no limit.
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
