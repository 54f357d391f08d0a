"""Turns a job file into the objects that the job needs in a cluster."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping

import attrs

from pairun.engines.manifest.choices import ManifestOptions, check_image
from pairun.engines.manifest.objectnames import default_name
from pairun.engines.manifest.objects import make_objects
from pairun.errors import PairunError, Problems
from pairun.kube.labels import LABEL_VALUE
from pairun.kube.owners import Object
from pairun.playbook.content import open_content
from pairun.playbook.effective import Layers
from pairun.playbook.rules import own_exit_codes
from pairun.review.jobreview import Settings, loaded, review_data
from pairun.secrets.vault import Vault

_KEY_BYTES = 32


def make(
    path: str,
    name: str | None,
    options: ManifestOptions,
    environment: Mapping[str, str],
    vault: Vault,
) -> tuple[ManifestOptions, list[Object], Problems]:
    """Review a job as ``--dry-run`` does, and make its objects.

    Args:
        path: the job file; ``-`` is standard input.
        name: the workload's name; derived from the job's name by default.
        options: the options of the command line.
        environment: its variables name further content roots.
        vault: collects every secret that is read.

    Returns:
        The options with what the job decides, the objects in the order of creation, and all
        problems; after an error the objects are incomplete.

    Raises:
        PairunError: Kubernetes would refuse an option's value.
    """
    _check(options)
    problems = Problems()
    check_image(options.image, problems)
    layers = Layers(open_content(options.roots, environment))
    settings = Settings(pod=options.settings, gpu_resource=options.gpu_resource)
    review = review_data(loaded(path), path, layers, options.user, [], settings, vault=vault)
    problems.extend(review.problems)
    job, objects = review.job, list[Object]()
    if job is not None and len(review.plans) == len(job.roles):
        options = attrs.evolve(
            options,
            name=default_name(job, options.engine) if name is None else name,
            grace_s={p.role.name: p.plans["runtime"].grace_s for p in review.plans},
            rendezvous_key=secrets.token_bytes(_KEY_BYTES),
            pods=review.pods,
            exit_codes={k: node.value for k, node in own_exit_codes(layers.content).items()},
        )
        try:
            objects = make_objects(job, options, problems)
        except PairunError:
            objects = []  # Every problem of it is among the problems.
    return options, objects, problems


_FORMS = {
    "namespace": "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?",
    "gpu_resource": "[a-z0-9][-a-z0-9.]*/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?",
    "log_host_path": "/[^\0]*",
    "user": LABEL_VALUE,
}


def _check(options: ManifestOptions) -> None:
    """Report wrong options together."""
    usage = Problems()
    if options.image_volume and options.engine == "framework":
        usage.error(
            "PR801", "--image-volume does not work with the engine framework",
            hint="FrameworkController drops volumes that its version of Kubernetes does not know",
        )  # fmt: skip
    for name, pattern in _FORMS.items():
        value = getattr(options, name)
        if value is not None and not re.fullmatch(pattern, value):
            option = f"--{name.replace('_', '-')}"
            usage.error("PR801", f"{option} '{value}' is not valid in Kubernetes")
    usage.raise_errors()
