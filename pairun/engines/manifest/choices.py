"""The options for a job's objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, get_args

import attrs

from pairun.errors import Problems
from pairun.job.podresources import GPU_RESOURCE
from pairun.playbook.document.reading import Node
from pairun.playbook.podfragment import NO_POD_SETTINGS, PodSettings

Engine = Literal["framework", "job", "jobset", "pod"]
ENGINES: tuple[Engine, ...] = get_args(Engine)

Version = tuple[int, int]

SERVICE_ACCOUNT = "runtime-account"
"""The account whose API token the init container gets, if no setting of the Pods names another."""

IMAGE = "PAIRUN_IMAGE"
"""The variable with the name of pairun's image."""


def check_image(image: str, problems: Problems) -> None:
    """Report that pairun's own image is missing or invalid."""
    if not is_image(image):
        message = f"'{image}' is not an image" if image else "the init container has no image"
        hint = f"give pairun's image, as the cluster pulls it, with --image or {IMAGE}"
        problems.error("PR782", message, hint=hint)


def is_image(text: str) -> bool:
    """Whether a text is a valid image name."""
    return text.split() == [text]


@attrs.frozen(kw_only=True)
class ManifestOptions:
    """The options for the objects of one job: those of `pairun manifest`, and what `make` adds.

    Attributes:
        engine: the engine that starts the Pods.
        image: the image of the init container.
        namespace: the namespace of all objects; None for kubectl's default.
        gpu_resource: the cluster's resource name for GPUs.
        log_host_path: the node's folder for logs; None for the engine's default.
        version: the cluster's Kubernetes version; None to allow every feature.
        image_volume: the user's container mounts pairun's image, so init copies no program.
        user: the user who submits the job.
        roots: content roots above those of the environment.
        settings: settings of the Pods from the command line, as `given_settings` returns them.
        name: the workload's name; the names of the other objects begin with it.
        grace_s: for each role, seconds from the stop signal to the end.
        rendezvous_key: 32 bytes that only the Pods of this job know.
        pods: for each role, the settings of its Pods.
        exit_codes: the cluster's exit codes for classes of failure.
    """

    engine: Engine
    image: str
    namespace: str | None = None
    gpu_resource: str = GPU_RESOURCE
    log_host_path: str | None = None
    version: Version | None = None
    image_volume: bool = False
    user: str = "user"
    roots: Sequence[str] = ()
    settings: Node | None = None
    name: str = ""
    grace_s: Mapping[str, float] = attrs.field(factory=dict)
    rendezvous_key: bytes = attrs.field(default=b"", repr=False)
    pods: Mapping[str, PodSettings] = attrs.field(factory=dict)
    exit_codes: Mapping[str, int] = attrs.field(factory=dict)

    def pod(self, role: str) -> PodSettings:
        """The settings of a role's Pods."""
        return self.pods.get(role, NO_POD_SETTINGS)

    @property
    def whole(self) -> PodSettings:
        """The settings that are equal for every role."""
        return next(iter(self.pods.values()), NO_POD_SETTINGS)

    @property
    def confined(self) -> bool:
        """Whether a profile of the Pod Security Standards applies: no access to the node."""
        return self.whole.get("pod_security") in ("baseline", "restricted")

    @property
    def host_network(self) -> bool:
        """Whether Pods use their node's network if no setting says otherwise."""
        return self.engine == "framework" and not self.confined
