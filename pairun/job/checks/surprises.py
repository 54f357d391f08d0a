"""Warnings about a valid job with settings that may surprise its author."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from pairun.errors import Place, Problem, Problems, nearest
from pairun.job.hiding import leaves, mask_secrets
from pairun.job.model import Job, Role
from pairun.job.templates import chosen_prerequisites, command_nodes, tag_place, undefined_tags
from pairun.playbook.document.reading import Node
from pairun.playbook.document.scalars import js_text
from pairun.secrets.forms import MIN_BYTES
from pairun.secrets.shapes import plain_secrets, script_secrets


def job_warnings(job: Job) -> Problems:
    """Every warning about a job, each with the place of its cause."""
    out = Problems()
    for role in job.roles:
        out.extend(_role_name(role))
        out.extend(_retry_count(job, role))
        out.extend(_completion(role))
        out.extend(_tags(job, role))
        out.extend(folded_warnings(command_nodes(job, role)))
    out.extend(_secrets(job))
    out.extend(_plain_secrets(job))
    return out


def _warning(id_: str, message: str, place: Place | None, hint: str | None = None) -> Problem:
    return Problem(id_, message, place, hint, "warning")


def _role_name(role: Role) -> Iterator[Problem]:
    if role.name != role.fc_name:
        message = f"the Pods of role '{role.name}' have the name '{role.fc_name}'"
        hint = (
            f"use lower-case letters and digits only, or expect both in variables: "
            f"PAI_HOST_IP_{role.fc_name}_0 and PAI_HOST_IP_{role.name}_0"
        )
        yield _warning("PR901", message, role.node.key, hint)


def _retry_count(job: Job, role: Role) -> Iterator[Problem]:
    if job.gang and role.retry_count:
        node = role.node.get("taskRetryCount")
        message = "taskRetryCount has no effect in a job whose instances start together"
        hint = "set extras.gangAllocation to false, or use jobRetryCount"
        yield _warning("PR902", message, node.place if node else None, hint)


def _completion(role: Role) -> Iterator[Problem]:
    counts = (
        ("minFailedInstances", role.min_failed),
        ("minSucceededInstances", role.min_succeeded),
    )
    for key, count in counts:
        node = role.node.at(("completion", key))
        word = "instance" if role.instances == 1 else "instances"
        if node is not None and count > role.instances:
            message = f"{key} is {count}, and the role '{role.name}' has {role.instances} {word}"
            hint = (
                "it never ends the job; the largest number with an effect is "
                f"{role.instances}, and -1 means never"
                if key == "minFailedInstances"
                else f"it never ends the job; {role.instances} or -1 waits for all"
            )
            yield _warning("PR931", message, node.place, hint)


def _tags(job: Job, role: Role) -> Iterator[Problem]:
    for node, shown in undefined_tags(job, role):
        message = f"nothing defines {shown}, and the command keeps it"
        yield _warning("PR904", message, tag_place(node, shown), _tag_hint(shown, job, role))


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


def _secrets(job: Job) -> Iterator[Problem]:
    if job.secrets is None:
        return
    source = job.secrets.place.source
    if source is job.node.place.source and mask_secrets(source.text) == source.text:
        message = (
            "OpenPAI stores the secrets of this job readable: it masks only a block that begins "
            "with 'secrets:' in the first column"
        )
        hint = "submit the job as YAML, with secrets: at the start of a line"
        yield _warning("PR909", message, job.secrets.head, hint)
    for path, leaf in _leaves(job.secrets, "$secrets"):
        text = "" if leaf.value is None else js_text(leaf.value)
        trimmed = text.strip()
        if text and len(trimmed.encode()) < MIN_BYTES:
            yield _warning("PR905", f"{path} is too short to be masked in logs", leaf.place)
        is_file = "\n" in trimmed and text == f"{trimmed}\n"  # such as a key
        if text != trimmed and not is_file:
            message = f"{path} has white space at its ends, and a server may refuse it"
            hint = "remove it, or quote the value; in a block use |- for a value without a line end"
            yield _warning("PR936", message, leaf.place, hint)


def _plain_secrets(job: Job) -> Iterator[Problem]:
    """A warning for each text with a secret that everyone who may read the job can read."""
    own = {js_text(leaf.value).strip() for leaf in leaves(job.secrets)} if job.secrets else set()
    for key, leaf in _open_texts(job.node):
        found = {*plain_secrets(key, leaf.value), *script_secrets(leaf.value)}
        found |= {value for value in own if value in leaf.value}
        found = {
            f for f in found if len(f.encode()) >= MIN_BYTES and not re.fullmatch(_HARMLESS, f)
        }
        if found:
            leaf.place.source.conceal(masked for f in found for masked in _masked(f, leaf.value))
            line = leaf.place.line
            leaf.place.source.hide(line, line + leaf.value.count("\n"))
            message = (
                f"a secret is in plain text under '{key}': everyone who may read the job can "
                "read it"
            )
            hint = (
                "move it to the secrets of the job or the Pod, and write <% $secrets.NAME %> here"
            )
            yield _warning("PR937", message, leaf.place, hint)


_HARMLESS = r"(?i)true|false|null|none|\d{1,7}|\[\w+\]|[.~]?(?:/[\w.-]{1,20})+"
"""Values of ``max_token=2048``, ``pad_token=[PAD]`` and ``token=/path/of/a/file``."""


def _masked(secret: str, text: str) -> Iterable[str]:
    """What to mask: of a short word only its assignments, because texts may contain it elsewhere."""
    if not (secret.isalpha() and len(secret) < _SHORT):
        return [secret]
    return [a for a in (f"={secret}", f'="{secret}', f"='{secret}") if a in text] or [secret]


_SHORT = 12


def _open_texts(node: Node, key: str = "") -> Iterator[tuple[str, Node]]:
    """The texts of a job with their keys, except in its secrets and in logins of images."""
    for name, child in node.items():
        if (key, name) != ("", "secrets") and name != "auth":
            yield from _open_texts(child, name)
    for child in node.elements():
        yield from _open_texts(child, key or "[]")
    if isinstance(node.value, str):
        yield key, node


def _leaves(node: Node, path: str) -> Iterator[tuple[str, Node]]:
    if isinstance(node.value, dict | list):
        for key, child in node.items():
            yield from _leaves(child, f"{path}.{key}")
        for index, child in enumerate(node.elements()):
            yield from _leaves(child, f"{path}[{index}]")
    else:
        yield path, node


def folded_warnings(commands: Iterable[Node]) -> Iterator[Problem]:
    """A warning for each line that looks like a command but continues the one above."""
    for command in commands:
        for place in _items(command):
            message = "this line continues the command above it, and is not a separate command"
            hint = "indent its '-' as that of the command above"
            yield Problem("PR932", message, place, hint, "warning")


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
