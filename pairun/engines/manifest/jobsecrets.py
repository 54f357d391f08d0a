"""The Secrets of a job, and the job's text without secret values."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import attrs

from pairun.engines.manifest.choices import Object, Options
from pairun.engines.manifest.objectnames import metadata
from pairun.errors import Place, Problems
from pairun.job.hiding import leaves, mask_secrets
from pairun.job.jobview import job_context
from pairun.job.model import Job
from pairun.job.planning import secrets_of
from pairun.job.writing import as_yaml
from pairun.module import reveal
from pairun.playbook.document.reading import Node, node_of
from pairun.playbook.document.scalars import js_text
from pairun.secrets.forms import MASK
from pairun.secrets.shapes import plain_secrets
from pairun.secrets.vault import Vault

DOCKER_HUB = "https://index.docker.io/v1/"
_LOGIN = ("username", "password", "registryuri")
_LEAST = 4
"""Shorter values occur by chance in too many texts."""


def config_secret_name(name: str) -> str:
    """The name of the Secret with the job's secrets, for a workload's name."""
    return f"{name}-configcred"


def registry_secret_name(name: str) -> str:
    """The name of the Secret with the logins for images."""
    return f"{name}-regcred"


def rendezvous_secret_name(name: str) -> str:
    """The name of the Secret that only the Pods of the job know."""
    return f"{name}-rendezvous"


# --- the job's text ------------------------------------------------------------------------------


def storable(job: Job, problems: Problems) -> Job:
    """Move the secrets out of a job's text, so that everybody may read the text.

    A plain password in an image's login becomes another secret. If a text would still contain a
    secret, for example as JSON, pairun writes the text again from the data.

    Args:
        job: the job.
        problems: collects errors, and warnings of secrets that stay in the text.
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
    _warn_of_plain_secrets(job, problems)
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


def _warn_of_plain_secrets(job: Job, problems: Problems) -> None:
    values = {js_text(n.value).strip() for n in leaves(job.secrets)} if job.secrets else set()
    values = {v for v in values if len(v) >= _LEAST}
    for key, leaf in _open_leaves(job.node):
        text = leaf.value
        if not isinstance(text, str):
            continue
        if any(plain_secrets(key, text)) or any(v in text for v in values):
            # The warning must not show the secret.
            line = leaf.place.line
            leaf.place.source.hide(line, line + text.count("\n") + 1)
            problems.warning(
                "PR784",
                f"a secret is in plain text under '{key}': all who may read the job's "
                "ConfigMap, Framework or Pods can read it",
                leaf.place,
                "move it below 'secrets', and write <% $secrets.NAME %> here",
            )


def _open_leaves(node: Node, key: str = "") -> Iterator[tuple[str, Node]]:
    """The scalars of a job with their keys, except those that are kept apart anyway."""
    if isinstance(node.value, dict):
        for name, child in node.items():
            if (key, name) != ("", "secrets") and name != "auth":
                yield from _open_leaves(child, name)
    elif isinstance(node.value, list):
        for child in node.elements():
            yield from _open_leaves(child, key or "[]")
    else:
        yield key, node


# --- the objects ---------------------------------------------------------------------------------


def secret_objects(job: Job, options: Options, problems: Problems) -> list[Object]:
    """Make the Secrets of a job that `storable` returned."""
    made = []
    if job.secrets is not None:
        text = as_yaml(job.secrets.plain())
        made.append(_secret(options, config_secret_name(options.name), "secrets.yaml", text))
    if logins := _logins(job, problems):
        made.append(
            _secret(
                options,
                registry_secret_name(options.name),
                ".dockerconfigjson",
                json.dumps({"auths": logins}),
                type_="kubernetes.io/dockerconfigjson",
            )
        )
    key = base64.b64encode(options.rendezvous_key).decode()
    made.append(_secret(options, rendezvous_secret_name(options.name), "key", key))
    return made


def _secret(options: Options, name: str, key: str, text: str, type_: str = "Opaque") -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata(options, name),
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
