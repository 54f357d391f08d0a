"""The choices that a person has about the objects of a job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

import attrs

Engine = Literal["framework", "job", "jobset", "pod"]
ENGINES: tuple[Engine, ...] = get_args(Engine)

Version = tuple[int, int]
Object = dict[str, Any]

SERVICE_ACCOUNT = "runtime-account"
GPU_RESOURCE = "nvidia.com/gpu"
KUBELET_S = 2.0
"""What of the Pod's grace time passes before the stop signal reaches PID 1, at the most."""


@attrs.frozen(kw_only=True)
class Options:
    """What is chosen for the objects of one job.

    Attributes:
        engine: what starts the Pods.
        image: of the init container.
        name: of the workload; what the others are called begins with it.
        namespace: of all objects; None leaves it to whoever applies them.
        service_account: whose API token the init container gets.
        app_uid: user of the app container; None leaves it to the image.
        gpu_resource: what the cluster calls a GPU.
        host_network: whether Pods have the network of their node; None is the engine's way.
        log_host_path: the node's folder for logs; None is the engine's way.
        version: the cluster's Kubernetes; None for one that has everything.
        grace_s: for each role, seconds from the stop signal to the end.
        rendezvous_key: 32 bytes that the Pods of this job alone know.
    """

    engine: Engine
    image: str
    name: str
    namespace: str | None = None
    service_account: str = SERVICE_ACCOUNT
    app_uid: int | None = None
    gpu_resource: str = GPU_RESOURCE
    host_network: bool | None = None
    log_host_path: str | None = None
    version: Version | None = None
    grace_s: Mapping[str, float]
    rendezvous_key: bytes = attrs.field(repr=False)
