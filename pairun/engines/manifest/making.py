"""Turns a job file into the objects that the job needs in a cluster."""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence

import attrs

from pairun.engines.manifest.choices import Engine, Object, Options, Version
from pairun.engines.manifest.objectnames import default_name
from pairun.engines.manifest.objects import is_image, make_objects
from pairun.errors import PairunError, Problems
from pairun.job.model import Job
from pairun.kube.labels import LABEL_VALUE
from pairun.playbook.content import open_content
from pairun.playbook.document.reading import Node
from pairun.playbook.effective import Layers
from pairun.playbook.rules import own_exit_codes
from pairun.review.jobreview import JobReview, review_job
from pairun.secrets.vault import Vault

IMAGE = "PAIRUN_IMAGE"
"""The variable with the name of pairun's image."""

KEY_BYTES = 32


@attrs.frozen(kw_only=True)
class Request:
    """A request for objects; the attributes are the options of ``pairun manifest``.

    Attributes:
        job: the job file.
        engine: the engine that starts the Pods.
        image: pairun's image, for the init container.
        name: the workload's name; derived from the job's name by default.
        namespace: the namespace of all objects.
        kubernetes_version: the cluster's version, such as ``1.28``.
        service_account: the account whose API token init gets.
        gpu_resource: the cluster's resource name for GPUs.
        log_host_path: the node's folder for logs.
        image_volume: whether the user's container mounts pairun's image.
        user: the user who submits the job.
        roots: content roots above those of the environment.
        pod: settings of the Pods from the command line, as `given_settings` returns them.
    """

    job: str
    engine: Engine
    image: str
    name: str | None
    namespace: str | None
    kubernetes_version: str | None
    service_account: str
    gpu_resource: str
    log_host_path: str | None
    image_volume: bool
    user: str
    roots: Sequence[str]
    pod: Node | None


@attrs.frozen(kw_only=True)
class Made:
    """The result of a request.

    Attributes:
        job: the job; None if it is not valid.
        options: the options for its objects; None if the job is not valid.
        objects: the objects, in the order of creation.
        problems: all problems; after an error the objects are incomplete.
    """

    job: Job | None
    options: Options | None
    objects: Sequence[Object]
    problems: Problems


def make(request: Request, environment: dict[str, str], vault: Vault) -> Made:
    """Review a job as ``--dry-run`` does, and make its objects.

    Args:
        request: the request.
        environment: its variables name further content roots.
        vault: collects every secret that is read.

    Raises:
        PairunError: Kubernetes would refuse an option's value.
    """
    version = _checked_version(request)
    problems = Problems()
    if not is_image(request.image):
        problems.error(
            "PR782",
            f"'{request.image}' is not an image"
            if request.image
            else "the init container has no image",
            hint=f"give pairun's image, as the cluster pulls it, with --image or {IMAGE}",
        )
    layers = Layers(open_content(request.roots, environment))
    review = review_job(
        request.job,
        layers,
        request.user,
        [],
        vault=vault,
        pod_flags=request.pod,
        gpu_resource=request.gpu_resource,
    )
    problems.extend(review.problems)
    options = _options(request, review, version, layers)
    objects: list[Object] = []
    if (
        review.job is not None
        and options is not None
        and len(review.plans) == len(review.job.roles)
    ):
        try:
            objects = make_objects(review.job, options, problems)
        except PairunError:
            objects = []  # Every problem of it is among the problems.
    return Made(job=review.job, options=options, objects=objects, problems=problems)


def _options(
    request: Request, review: JobReview, version: Version | None, layers: Layers
) -> Options | None:
    if review.job is None:
        return None
    return Options(
        engine=request.engine,
        image=request.image,
        name=default_name(review.job, request.engine) if request.name is None else request.name,
        namespace=request.namespace,
        service_account=request.service_account,
        gpu_resource=request.gpu_resource,
        log_host_path=request.log_host_path,
        version=version,
        image_volume=request.image_volume,
        grace_s={p.role.name: p.plans["runtime"].grace_s for p in review.plans},
        rendezvous_key=secrets.token_bytes(KEY_BYTES),
        pods=review.pods,
        exit_codes={k: node.value for k, node in own_exit_codes(layers.content).items()},
    )


_FORMS = {
    "namespace": "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?",
    "service_account": "[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?",
    "gpu_resource": "[a-z0-9][-a-z0-9.]*/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?",
    "log_host_path": "/[^\0]*",
    "user": LABEL_VALUE,
}


def _checked_version(request: Request) -> Version | None:
    """The cluster's version; a wrong one is reported together with other wrong options."""
    usage = Problems()
    version = None
    if (text := request.kubernetes_version) is not None:
        match = re.fullmatch(r"v?([0-9]{1,3})\.([0-9]{1,4})(?:[.+-].*)?\+?", text)
        if match is None:
            usage.error(
                "PR801", f"--kubernetes-version '{text}' is not a version", hint="as in 1.28"
            )
        else:
            version = int(match[1]), int(match[2])
    if request.image_volume and request.engine == "framework":
        usage.error(
            "PR801", "--image-volume does not work with the engine framework",
            hint="FrameworkController drops volumes that its version of Kubernetes does not know",
        )  # fmt: skip
    for name, pattern in _FORMS.items():
        value = getattr(request, name)
        if value is not None and not re.fullmatch(pattern, value):
            option = f"--{name.replace('_', '-')}"
            usage.error("PR801", f"{option} '{value}' is not valid in Kubernetes")
    usage.raise_errors()
    return version
