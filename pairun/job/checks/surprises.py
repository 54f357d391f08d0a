"""Warnings about a valid job with settings that may surprise its author."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from pairun.errors import Place, Problem, Problems, nearest
from pairun.job.hiding import mask_secrets
from pairun.job.model import Job, Role
from pairun.job.templates import (
    chosen_prerequisites,
    command_nodes,
    tag_place,
    undefined_tags,
)
from pairun.playbook.document.reading import Node
from pairun.playbook.document.scalars import js_text
from pairun.secrets.forms import MIN_BYTES


def job_warnings(job: Job) -> Problems:
    """Every warning about a job, each with the place of its cause."""
    out = Problems()
    for role in job.roles:
        out.extend(_role_name(role))
        out.extend(_retry_count(job, role))
        out.extend(_completion(role))
        out.extend(_tags(job, role))
        out.extend(_image(role))
        out.extend(folded_warnings(command_nodes(job, role)))
    out.extend(_secrets(job))
    return out


def _warning(id_: str, message: str, place: Place | None, hint: str | None = None) -> Problem:
    return Problem(id_, message, place, hint, "warning")


def _role_name(role: Role) -> Iterator[Problem]:
    if role.name != role.fc_name:
        yield _warning(
            "PR901",
            f"the Pods of role '{role.name}' have the name '{role.fc_name}'",
            role.node.key,
            f"use lower-case letters and digits only, or expect both in variables: "
            f"PAI_HOST_IP_{role.fc_name}_0 and PAI_HOST_IP_{role.name}_0",
        )


def _retry_count(job: Job, role: Role) -> Iterator[Problem]:
    if job.gang and role.retry_count:
        node = role.node.get("taskRetryCount")
        yield _warning(
            "PR902",
            "taskRetryCount has no effect in a job whose tasks start together",
            node.place if node else None,
            "set extras.gangAllocation to false, or use jobRetryCount",
        )


def _completion(role: Role) -> Iterator[Problem]:
    counts = (
        ("minFailedInstances", role.min_failed),
        ("minSucceededInstances", role.min_succeeded),
    )
    for key, count in counts:
        node = role.node.at(("completion", key))
        if node is not None and count > role.instances:
            yield _warning(
                "PR931",
                f"{key} is {count}, and the role '{role.name}' has {_instances(role.instances)}",
                node.place,
                "it never ends the job; the largest number with an effect is "
                f"{role.instances}, and -1 means never"
                if key == "minFailedInstances"
                else f"it never ends the job; {role.instances} or -1 waits for all",
            )


def _instances(count: int) -> str:
    return f"{count} instance{'s' * (count != 1)}"


def _tags(job: Job, role: Role) -> Iterator[Problem]:
    for node, shown in undefined_tags(job, role):
        yield _warning(
            "PR904",
            f"nothing defines {shown}, and the command keeps it",
            tag_place(node, shown),
            _tag_hint(shown, job, role),
        )


def _tag_hint(tag: str, job: Job, role: Role) -> str:
    key = tag.strip("<%> ").lstrip("$")
    namespace, _, rest = key.partition(".")
    prerequisites = chosen_prerequisites(role)
    if namespace in prerequisites:
        chosen = prerequisites[namespace]
        if chosen is None:
            return f"name a prerequisite of type {namespace} in the role: {namespace}: NAME"
        field = re.split(r"[.\[]", rest)[0]
        near = nearest(field, [name for name, _ in chosen.node.items()])
        hint = f"did you mean '{near}'? " if near and near != field else ""
        return f"{hint}the prerequisite {chosen.name} has no '{rest}'"
    known = (
        f"{namespace}.{name}"
        for namespace, node in (("parameters", job.parameters), ("secrets", job.secrets))
        for name, _ in (node.items() if node else ())
    )
    near = nearest(key, known)
    return f"did you mean <% ${near} %>?" if near else "define it under parameters or secrets"


def _image(role: Role) -> Iterator[Problem]:
    uri = role.image.node.get("uri")
    if uri is None:
        return
    reason = _refused(uri.value)
    auth = role.image.node.get("auth")
    place = uri.place
    if auth is not None and auth.get("registryuri") is None:
        reason, place = "the login has no registry", auth.place
    if reason:
        yield _warning("PR906", f"OpenPAI's own runtime refuses this image: {reason}", place)


def _refused(uri: str) -> str | None:
    if uri != uri.strip():
        return "there are spaces around its name"
    if re.match("https?://", uri):
        return "its name begins with a protocol"
    if "@" in uri:
        return "it is named by digest"
    tag = uri.rpartition("/")[2].partition(":")[2]
    return f"the tag '{tag}' has upper-case letters" if tag != tag.lower() else None


def _secrets(job: Job) -> Iterator[Problem]:
    if job.secrets is None:
        return
    source = job.secrets.place.source
    if source is job.node.place.source and mask_secrets(source.text) == source.text:
        yield _warning(
            "PR909",
            "OpenPAI stores the secrets of this job readable: it masks only a block that begins "
            "with 'secrets:' in the first column",
            job.secrets.key or job.secrets.place,
            "submit the job as YAML, with secrets: at the start of a line",
        )
    for path, leaf in _leaves(job.secrets, "$secrets"):
        text = "" if leaf.value is None else js_text(leaf.value)
        trimmed = text.strip()
        if text and len(trimmed.encode()) < MIN_BYTES:
            yield _warning("PR905", f"{path} is too short to be masked in logs", leaf.place)
        is_file = "\n" in trimmed and text == f"{trimmed}\n"  # such as a key
        if text != trimmed and not is_file:
            yield _warning(
                "PR936",
                f"{path} has white space at its ends, and a server may refuse it",
                leaf.place,
                "remove it, or quote the value; in a block use |- for a value without a line end",
            )


def _leaves(node: Node, path: str) -> Iterator[tuple[str, Node]]:
    if isinstance(node.value, dict | list):
        for key, child in node.items():
            yield from _leaves(child, f"{path}.{key}")
        for index, child in enumerate(node.elements()):
            yield from _leaves(child, f"{path}[{index}]")
    else:
        yield path, node


def folded_warnings(commands: Iterable[Node]) -> Iterator[Problem]:
    """A warning for each line that looks like a command but continues the one above.

    Args:
        commands: the role's commands.
    """
    for command in commands:
        for place in _items(command):
            yield Problem(
                "PR932",
                "this line continues the command above it, and is not a separate command",
                place,
                "indent its '-' as that of the command above",
                "warning",
            )


def _items(command: Node) -> Iterator[Place]:
    """The lines of a plain text, except the first, that look like an item of a list."""
    place, text = command.place, command.value
    if not isinstance(text, str):
        return
    lines = place.source.lines
    first = lines[place.line - 1][place.column - 1 :].strip() if place.line <= len(lines) else ""
    end = len(first) if text.startswith(first) else len(text)
    for number in range(place.line, len(lines)):
        line = lines[number].strip()
        # Quotes and a block's header are not part of the text, and a comment ends a plain text.
        if not line or not text.startswith(f" {line}", end):
            return
        if line.startswith("- "):
            column = lines[number].index("-") + 1
            yield Place(place.source, number + 1, column)
        end += 1 + len(line)
