"""The choices that a person has about the objects of a job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

import attrs

from pairun.job.podresources import GPU_RESOURCE
from pairun.playbook.pod.layering import NO_POD_SETTINGS, PodSettings
from pairun.playbook.pod.table import Engine

ENGINES: tuple[Engine, ...] = get_args(Engine)

Version = tuple[int, int]
Object = dict[str, Any]

SERVICE_ACCOUNT = "runtime-account"
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
        gpu_resource: what the cluster calls a GPU.
        log_host_path: the node's folder for logs; None is the engine's way.
        version: the cluster's Kubernetes; None for one that has everything.
        image_volume: the user's container mounts pairun's image, so init copies no program.
        grace_s: for each role, seconds from the stop signal to the end.
        rendezvous_key: 32 bytes that the Pods of this job alone know.
        pods: for each role, the settings of its Pods.
        exit_codes: the codes that the cluster gives to classes of failure.
    """

    engine: Engine
    image: str
    name: str
    namespace: str | None = None
    service_account: str = SERVICE_ACCOUNT
    gpu_resource: str = GPU_RESOURCE
    log_host_path: str | None = None
    version: Version | None = None
    image_volume: bool = False
    grace_s: Mapping[str, float]
    rendezvous_key: bytes = attrs.field(repr=False)
    pods: Mapping[str, PodSettings] = attrs.field(factory=dict)
    exit_codes: Mapping[str, int] = attrs.field(factory=dict)

    def pod(self, role: str) -> PodSettings:
        """The settings of a role's Pods."""
        return self.pods.get(role, NO_POD_SETTINGS)

    @property
    def whole(self) -> PodSettings:
        """The settings that are the same for every role."""
        return next(iter(self.pods.values()), NO_POD_SETTINGS)

    @property
    def confined(self) -> bool:
        """Whether a profile of the Pod Security Standards holds: nothing of the node is used."""
        return self.whole.get("pod_security") in ("baseline", "restricted")

    @property
    def host_network(self) -> bool:
        """Whether Pods have their node's network where no setting says it."""
        return self.engine == "framework" and not self.confined
