"""The names of a job's objects, and the labels that select them."""

from __future__ import annotations

import hashlib
import re

from pairun.engines.manifest.choices import Engine, ManifestOptions
from pairun.errors import Problems
from pairun.job.model import Job
from pairun.kube.labels import JOB_LABEL
from pairun.kube.owners import Object

LABEL_MAX = 63
"""The limit for labels, and for names that become host names (RFC 1123)."""
_NAME_MAX = 36
"""`LABEL_MAX` without the room for role, index and five random characters."""

ENGINE = "pairun/engine"
"""Annotation of the ConfigMap: the engine, which a login may need that cannot read every kind."""
MANAGED = {"app.kubernetes.io/managed-by": "pairun"}

_HASH = 8
# FrameworkController accepts no hyphen, and JobSet no leading digit (RFC 1035).
_NAMES = {"framework": "[a-z0-9]+"}
_NAME = "[a-z]([-a-z0-9]*[a-z0-9])?"
_LABEL_VALUE = re.compile("([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?")


def default_name(job: Job, engine: Engine) -> str:
    """The default name of a job's workload.

    A Framework gets the name that OpenPAI's REST server would give it. Otherwise pairun drops what
    Kubernetes does not accept from the job's name; a changed name ends with a hash of the whole.
    """
    if engine == "framework":
        return job.framework_id
    name = re.sub("[^a-z0-9]+", "-", job.name.lower()).strip("-")
    if not name[:1].isalpha():
        name = f"job-{name}".strip("-")
    return (
        name if name == job.name and len(name) <= _NAME_MAX else _hashed(name, job.name, _NAME_MAX)
    )


def short(text: str, limit: int) -> str:
    """Shorten a name to a limit; a cut name ends with a hash of the whole."""
    return text if len(text) <= limit else _hashed(text, text, limit)


def _hashed(text: str, whole: str, limit: int) -> str:
    digest = hashlib.md5(whole.encode(), usedforsecurity=False).hexdigest()[:_HASH]
    return f"{text[: limit - _HASH - 1].rstrip('-')}-{digest}"


def labels(options: ManifestOptions) -> dict[str, str]:
    """The labels of every object of a job."""
    return {**MANAGED, JOB_LABEL: options.name}


def metadata(options: ManifestOptions, name: str) -> Object:
    """The metadata of an object."""
    space = {"namespace": options.namespace} if options.namespace else {}
    return {"name": name, **space, "labels": labels(options)}


def check_names(job: Job, options: ManifestOptions, problems: Problems) -> None:
    """Report names that Kubernetes would refuse."""
    pattern = _NAMES.get(options.engine, _NAME)
    if len(options.name) > _NAME_MAX or not re.fullmatch(pattern, options.name):
        kind = "letters and digits" if options.engine == "framework" else "letters, digits and '-'"
        first = "" if options.engine == "framework" else ", a letter first"
        problems.error(
            "PR783",
            f"--name '{options.name}' is not a valid name for the engine {options.engine}",
            hint=f"it takes {kind} in lower case{first}, {_NAME_MAX} characters at most",
        )
    for role in job.roles:
        if len(role.fc_name) > LABEL_MAX:
            problems.error(
                "PR783",
                f"the role name '{role.name}' is too long for a label of Kubernetes: "
                f"{len(role.fc_name)} letters and digits, at most {LABEL_MAX}",
                role.node.key,
            )
    if options.engine == "framework":
        virtual_cluster = job.node.at(("defaults", "virtualCluster"))
        place = virtual_cluster.place if virtual_cluster else None
        for what, value, at in (
            ("the user", job.user, None),
            ("the virtual cluster", job.virtual_cluster, place),
        ):
            if len(value) > LABEL_MAX or not _LABEL_VALUE.fullmatch(value):
                problems.error("PR783", f"{what} '{value}' cannot be a label of Kubernetes", at)
