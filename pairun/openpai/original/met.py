"""Finds the cases of the table that apply to a job, as far as its file shows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pairun.base.records import record
from pairun.errors import Place
from pairun.job.model import Job, Role
from pairun.job.plugins import prerequisites_of
from pairun.job.templates import TAG, command_nodes, tag_key, undefined_tags
from pairun.module import Secret, reveal
from pairun.openpai.original.parameters import InitFails, documents, listed_plugins, passed_on
from pairun.playbook.document.reading import Node
from pairun.playbook.inputs import PluginUse

_HTML = re.compile("[&<>\"']")
_IMAGE = re.compile(r"(?:[a-z0-9.:_-]+/)*[a-z0-9_.-]+(?::[a-z0-9_.-]+)?")
"""The image names that the original accepts: no upper case, digest or surrounding text."""
_EVENTS = {"taskFails", "containerStart", "containerExit"}
_TRUE = ("true", "True")


@record
class Met:
    """A case that applies to a role of a job.

    Attributes:
        id: the case's id in the table.
        place: its place in the job file.
        what: what it is in this job, without secrets.
        ends: the exit code of the original's init container in this case, or None.
    """

    id: str
    place: Place
    what: str
    ends: int | None = None


def cases_of(job: Job, role: Role, uses: tuple[PluginUse, ...]) -> list[Met]:
    """The cases of the table that apply to a role.

    Args:
        job: the job.
        role: the role.
        uses: its plugins, with parameters as rendered by pairun.
    """
    return [
        *_names(job, role),
        *_texts(job, role),
        *_images(job, role),
        *_parameters(job, role, uses),
        *_plugins(job, role, uses),
    ]


def _names(job: Job, role: Role) -> Iterator[Met]:
    if role.name != role.fc_name:
        place = role.node.key or role.node.place
        what = f"the role '{role.name}' is '{role.fc_name}' in the Pods"
        yield Met(id="role-name", place=place, what=what, ends=1)
        yield Met(id="raw-names", place=place, what=f"variables with '{role.name}' in their names")
    if job.plugin_overrides is not None:
        place = job.plugin_overrides.key or job.plugin_overrides.place
        yield Met(id="overrides", place=place, what="extras.pairun")
    if not job.gang:
        yield Met(id="retriever", place=job.node.place, what="gangAllocation is false")


def _texts(job: Job, role: Role) -> Iterator[Met]:
    commands = command_nodes(job, role)
    used = {key for c in commands for tag in TAG.finditer(str(c.value)) if (key := tag_key(tag))}
    if job.secrets is not None and isinstance(job.secrets.value, dict):
        for name, node in job.secrets.items():
            if not any(key.startswith(f"$secrets.{name}") for key in used):
                continue
            place, value = node.key or node.place, node.plain()
            value = reveal(value) if isinstance(value, Secret) else value
            if isinstance(value, str) and _HTML.search(value):
                yield Met(id="secret-escaping", place=place, what=f"the secret '{name}'")
            elif not isinstance(value, str | int) or isinstance(value, bool):
                yield Met(id="secret-value", place=place, what=f"the secret '{name}'")
        for command, tag in undefined_tags(job, role):
            yield Met(id="unknown-tag", place=command.place, what=tag)


def _images(job: Job, role: Role) -> Iterator[Met]:
    image = role.image
    uri, auth = image.node.get("uri"), image.node.get("auth")
    if uri is not None and not _IMAGE.fullmatch(str(uri.value)):
        yield Met(id="image-name", place=uri.place, what=str(uri.value), ends=254)
    if auth is not None and auth.get("username") and auth.get("registryuri") is None:
        place = auth.key or auth.place
        yield Met(id="image-login", place=place, what="auth without registryuri", ends=254)
    for other in job.prerequisites:
        if other.name == image.name and other.type != image.type:
            what = f"'{other.name}' of the type {other.type}"
            yield Met(id="image-twin", place=other.node.place, what=what, ends=254)


def _parameters(job: Job, role: Role, uses: tuple[PluginUse, ...]) -> Iterator[Met]:
    """Cases that come from the original's way of passing parameters."""
    try:
        document = documents(job)
    except InitFails as e:
        yield Met(id="yaml", place=job.node.place, what=str(e), ends=1)
        return
    if not isinstance(document, dict):
        return
    own = [u for u in uses if not _is_prerequisite(job, role, u)]
    items = [i for i, entry in zip(listed_plugins(job), job.plugins, strict=False)
             if entry.is_for(role) and isinstance(i, dict)]  # fmt: skip
    for item, use in zip(items, own, strict=False):
        if "parameters" not in item:
            continue
        given, place = item["parameters"], use.parameters.place
        name = f"the plugin {use.plugin}"
        try:
            there = passed_on(given, job, role)
        except InitFails as e:
            kind = "parameter-tag" if str(e).startswith("<%") else "parameter-text"
            yield Met(id=kind, place=place, what=f"{name}: {e}", ends=1)
            continue
        here = _revealed(use.parameters.plain())
        for path in _paths(there, here):
            value = _at(here, path)
            kind = "parameter-null" if value is None else "parameter-text"
            if isinstance(_at(there, path), bool | int) or not isinstance(value, str | None):
                kind = "yaml"
            where = ".".join(map(str, path))
            yield Met(id=kind, place=_place(use.parameters, path), what=f"{name}: {where}")


def _is_prerequisite(job: Job, role: Role, use: PluginUse) -> bool:
    return any(entry.node.place == use.place for entry in prerequisites_of(job, role))


def _plugins(job: Job, role: Role, uses: tuple[PluginUse, ...]) -> Iterator[Met]:
    for entry in prerequisites_of(job, role):
        if entry.requires and entry.plugin:
            yield Met(id="require", place=entry.node.place, what=f"'{entry.name}'")
    for item in job.plugins:
        policy = item.node.get("failurePolicy")
        if item.is_for(role) and policy is not None and str(policy.value) not in ("fail", "ignore"):
            yield Met(id="failure-policy-case", place=policy.place, what=str(policy.value))
    for use in uses:
        yield from _plugin(use)


def _plugin(use: PluginUse) -> Iterator[Met]:
    parameters, place = use.parameters, use.place
    if use.plugin == "git" and (target := parameters.get("clone_dir")) and target.value:
        yield Met(id="git-files", place=target.key or target.place, what="clone_dir")
    if use.plugin == "git":
        for key in ("branch", "commit", "lfs"):
            if (node := parameters.get(key)) is not None:
                yield Met(id="git-revision", place=node.key or node.place, what=key)
    if use.plugin == "ssh":
        yield Met(id="ssh-extension", place=place, what="for users without saved keys", ends=1)
        barrier, limit = parameters.get("sshbarrier"), parameters.get("sshbarrierTimeout")
        if barrier is not None and str(barrier.value) in _TRUE and limit is None:
            yield Met(id="ssh-barrier-time", place=barrier.place, what="no sshbarrierTimeout")
    if use.plugin == "tensorboard":
        yield Met(id="tensorboard-log", place=place, what="the log of TensorBoard")
    callbacks = parameters.get("callbacks")
    for callback in callbacks.elements() if callbacks else ():
        event = callback.get("event")
        if event is not None and event.value in _EVENTS:
            yield Met(id="callback-events", place=event.place, what=str(event.value))


# --- comparing values ----------------------------------------------------------------------------


def _revealed(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {k: _revealed(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_revealed(v) for v in value]
    return reveal(value) if isinstance(value, Secret) else value


def _paths(
    there: Any, here: Any, path: tuple[str | int, ...] = ()
) -> Iterator[tuple[str | int, ...]]:
    """The paths at which two values differ."""
    if isinstance(there, dict) and isinstance(here, dict) and there.keys() == here.keys():
        for key, value in here.items():
            yield from _paths(there[key], value, (*path, key))
    elif isinstance(there, list) and isinstance(here, list) and len(there) == len(here):
        for number, value in enumerate(here):
            yield from _paths(there[number], value, (*path, number))
    elif type(there) is not type(here) or there != here:
        yield path


def _at(value: Any, path: tuple[str | int, ...]) -> Any:
    for step in path:
        value = value[step]
    return value


def _place(node: Node, path: tuple[str | int, ...]) -> Place:
    found = node.at(path)
    return found.place if found else node.place
