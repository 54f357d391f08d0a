"""The Secrets of a job, and its ConfigMap: the job's text without secret values."""

from __future__ import annotations

import base64
import json
from typing import Any

import attrs

from pairun.engines.manifest.choices import ManifestOptions
from pairun.engines.manifest.objectnames import ENGINE, metadata
from pairun.errors import Place, Problems
from pairun.job.hiding import mask_secrets
from pairun.job.jobview import job_context
from pairun.job.model import Job
from pairun.job.planning import secrets_of
from pairun.job.writing import as_yaml
from pairun.kube.labels import CONFIG_SECRET, JOB_CONFIG, KEY_SECRET, REGISTRY_SECRET
from pairun.kube.owners import Object
from pairun.module import reveal
from pairun.openpai.framework import make_framework
from pairun.playbook.document.reading import node_of
from pairun.secrets.forms import MASK
from pairun.secrets.vault import Vault

JOB_SECRETS_FOLDER = "/usr/local/pai-job"
"""Where it is mounted: not on the shared volume, where the user's container may write."""
FILE = "framework.json"
_MAX_BYTES = 1024 * 1024
"""The API server's limit for the data of one ConfigMap or Secret, in bytes."""
DOCKER_HUB = "https://index.docker.io/v1/"
_LOGIN = ("username", "password", "registryuri")


# --- the job's text ------------------------------------------------------------------------------


def storable(job: Job, problems: Problems) -> Job:
    """Move the secrets out of a job's text, so that everybody may read the text.

    A plain password in an image's login becomes another secret. If a text would still contain a
    secret, for example as JSON, pairun writes the text again from the data.
    """
    if job.secrets_unknown:
        secrets = job.node.get("secrets")
        problems.error(
            "PR782",
            "the values of the job's secrets are unknown, so no Secret can be made",
            secrets.place if secrets else None,
            "give the job's own file instead of its Framework",
        )
        return job
    moved: dict[str, str] = {}
    document = job.node.plain()
    for entry in document.get("prerequisites") or ():
        if isinstance(auth := entry.get("auth"), dict):
            entry["auth"] = _without_password(auth, entry["name"], moved)
    shown = mask_secrets(job.text)
    is_masked = job.secrets is None or shown != job.text
    if not moved and is_masked and Vault(secrets_of(job)).text(shown) == shown:
        return job
    given = job.secrets.plain() if job.secrets else {}
    if job.secrets is not None or moved:
        document["secrets"] = MASK
    return attrs.evolve(
        job,
        text=as_yaml(document),
        secrets=node_of({**given, **moved}, job.node.place) if document.get("secrets") else None,
    )


def _without_password(auth: dict[str, Any], image: str, moved: dict[str, str]) -> dict[str, Any]:
    kept = {key: value for key, value in auth.items() if key in _LOGIN}
    password = kept.get("password")
    if isinstance(password, str) and "<%" not in password:
        name = f"pairun_login_{image}"
        moved[name] = password
        kept["password"] = f"<% $secrets.{name} %>"
    return kept


# --- the objects ---------------------------------------------------------------------------------


def secret_objects(job: Job, options: ManifestOptions, problems: Problems) -> list[Object]:
    """Make the Secrets of a job that `storable` returned."""
    made = []
    if job.secrets is not None:
        text = as_yaml(job.secrets.plain())
        made.append(_secret(options, CONFIG_SECRET, "secrets.yaml", text))
    if logins := _logins(job, problems):
        text, kind = json.dumps({"auths": logins}), "kubernetes.io/dockerconfigjson"
        made.append(_secret(options, REGISTRY_SECRET, ".dockerconfigjson", text, kind))
    key = base64.b64encode(options.rendezvous_key).decode()
    made.append(_secret(options, KEY_SECRET, "key", key))
    return made


def _secret(
    options: ManifestOptions, end: str, key: str, text: str, type_: str = "Opaque"
) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata(options, f"{options.name}-{end}"),
        "type": type_,
        "data": {key: base64.b64encode(text.encode()).decode()},
    }


def _logins(job: Job, problems: Problems) -> dict[str, dict[str, str]]:
    """The logins by registry, for the images that roles use."""
    logins: dict[str, dict[str, str]] = {}
    places: dict[str, Place | None] = {}
    for role in job.roles:
        auth = job_context(job, role)["image"]["auth"]
        if auth is None:
            continue
        registry = reveal(auth["registry"] or "") or DOCKER_HUB
        pair = f"{reveal(auth['username'] or '')}:{reveal(auth['password'] or '')}"
        login = {"auth": base64.b64encode(pair.encode()).decode()}
        if logins.setdefault(registry, login) != login:
            problems.error(
                "PR780",
                f"two images have different logins for {registry}, and a Pod's pull Secret has only one",
                role.image.node.place,
                also=[("the other image", place)] if (place := places[registry]) else [],
            )
        places.setdefault(registry, role.image.node.place)
    return logins


def config_map(job: Job, options: ManifestOptions, problems: Problems) -> Object:
    """Store the job as a Framework object without status.

    Args:
        job: the job, without secrets in its text.
    """
    framework = make_framework(job, framework_name=options.name)
    framework["metadata"].pop("namespace")
    text = json.dumps(framework, indent=1, ensure_ascii=False) + "\n"
    check_size(len(text.encode()), _MAX_BYTES, "a ConfigMap", problems)
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            **metadata(options, f"{options.name}-{JOB_CONFIG}"),
            "annotations": {ENGINE: options.engine},
        },
        "data": {FILE: text},
    }


def check_size(size: int, limit: int, what: str, problems: Problems) -> None:
    """Report a job whose text has more bytes than an API server accepts."""
    if size > limit:
        message = f"the job is too large for {what}: {size >> 10} KiB, at most {limit >> 10}"
        problems.error("PR783", message, hint="download long content, such as scripts, at run time")
