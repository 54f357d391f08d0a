"""The tags ``<% $namespace.key %>`` of a job, and which renderer replaces which tag.

There are three renderers. OpenPAI's REST server renders the user's command before a Pod exists. The
runtime inserts secrets into that command and into the login of the image. It also renders the
parameters of plugins. Inserted text is data: it is never rendered again. The job's own layer,
``extras.pairun``, has expressions instead.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from pairun.errors import Place, Problems
from pairun.job import mustache
from pairun.job.hiding import leaves
from pairun.job.model import Job, Prerequisite, Role
from pairun.module import Secret
from pairun.playbook.document.reading import Node, elements, entries
from pairun.playbook.document.scalars import js_text
from pairun.playbook.document.textplaces import find_from
from pairun.playbook.expressions.views import Unknown

TAG = re.compile("<%([^<>%]*)%>")
"""A text that may be a tag of the protocol; `tag_key` decides."""

_ANY_TAG = re.compile(r"<%(?:(?!<%|%>).)*%>", re.DOTALL)


def user_command(job: Job, role: Role) -> str:
    """The text of a role's command as OpenPAI's REST server renders it; secrets stay tags."""
    view = {
        "$parameters": job.parameters.plain() if job.parameters else None,
        **{
            f"${type_}": chosen.node.plain() if chosen else None
            for type_, chosen in chosen_prerequisites(role).items()
        },
    }
    return mustache.render(_joined(command_nodes(job, role)), view)


def chosen_prerequisites(role: Role) -> Mapping[str, Prerequisite | None]:
    """The prerequisites of ``$script``, ``$data`` and ``$output`` in a role."""
    return {"script": role.script, "output": role.output, "data": role.data}


def command_nodes(job: Job, role: Role) -> list[Node]:
    """The commands of a role, including those of the deployment."""
    return _commands(job.deployment, role.name, role.node)


def _commands(deployment: Node | None, name: str, role: Node) -> list[Node]:
    extra = deployment.at(("taskRoles", name)) if deployment else None
    return [
        *elements(extra, "preCommands"),
        *elements(role, "commands"),
        *elements(extra, "postCommands"),
    ]


def _joined(commands: list[Node]) -> str:
    return "\n".join(mustache.trim(c.value) for c in commands)


def check_tags(document: Node, deployment: Node | None, problems: Problems) -> None:
    """Report tags for which OpenPAI's REST server rejects the job."""
    for name, role in entries(document, "taskRoles"):
        commands = [c for c in _commands(deployment, name, role) if isinstance(c.value, str)]
        try:
            mustache.parse(_joined(commands))
        except mustache.TagError as e:
            message = f"OpenPAI cannot read the tags of this command: {e.message}"
            hint = "'<%' begins a tag of the job protocol; in shell text, write it as '<''%'"
            problems.error("PR510", message, _place_at(commands, e.position), hint)


def _place_at(commands: list[Node], position: int) -> Place:
    for command in commands:
        position -= len(mustache.trim(command.value)) + 1
        if position < 0:
            return command.place
    return commands[-1].place


def render_secrets(text: str, secrets: Node | None) -> str | Secret:
    """Insert the raw values of secrets into a text.

    Args:
        text: the user's command, or a field of an image's login.
        secrets: the value of ``$secrets``; None leaves the text unchanged.

    Returns:
        The text; a `Secret` if a secret was inserted.
    """
    touched = False

    def replace(tag: re.Match[str]) -> str:
        nonlocal touched
        value = _secret(tag_key(tag), secrets)
        touched = touched or value is not None
        return tag[0] if value is None else as_text(value.plain())

    rendered = TAG.sub(replace, text)
    return Secret(rendered) if touched else rendered


def unresolved_tags(text: str, secrets: Node | None) -> list[str]:
    """The tags in a text that the secrets do not resolve, including foreign ones."""
    tags = (m[0] for m in _ANY_TAG.finditer(text))
    known = ((t, TAG.fullmatch(t)) for t in tags)
    return [t for t, tag in known if tag is None or _secret(tag_key(tag), secrets) is None]


def undefined_tags(job: Job, role: Role) -> Iterator[tuple[Node, str]]:
    """The tags of a role's command that nothing defines, each with its text in the job file.

    A job whose secrets are unknown yields no tag of ``$secrets``.
    """
    commands = command_nodes(job, role)
    written: dict[str, tuple[Node, str]] = {}
    for command in commands:
        for tag in unresolved_tags(command.value, None):
            written.setdefault(_spelled(tag), (command, tag))
    for tag in unresolved_tags(user_command(job, role), job.secrets):
        spelled = _spelled(tag)
        if job.secrets_unknown and spelled.startswith("$secrets."):
            continue  # one warning covers them all
        yield written.get(spelled, (commands[0], tag))


def _spelled(tag: str) -> str:
    # Rendering writes indices in dotted form and normalizes spaces.
    return re.sub(r"\[(\d+)\]", r".\1", tag[2:-2].strip())


def _secret(key: str | None, secrets: Node | None) -> Node | None:
    namespace, *path = tag_path(key) if key else [""]
    return follow(secrets, path) if namespace == "$secrets" else None


def tag_key(tag: re.Match[str]) -> str | None:
    """The key of a match of `TAG`, or None if the tag is not one of the protocol."""
    key = tag[1].strip()
    # `&` and `{` mean "raw" in mustache, and the runtime's values are always raw.
    if key.startswith("&"):
        key = key[1:].lstrip()
    elif key.startswith("{") and key.endswith("}"):
        key = key[1:-1].strip()
    words = re.fullmatch(r"[^\s{}]+(?:[ \t]+[^\s{}]+)*", key)
    return key if words and key.startswith(("$", "this.")) and key != "this." else None


def tag_path(key: str) -> list[str]:
    """The steps of a tag's key; ``a[0]`` and ``a.0`` are the same."""
    return [step for step in re.sub(r"\[\s*(\d+)\s*\]", r".\1", key).split(".") if step]


def tag_place(text: Node, tag: str) -> Place:
    """The place of a tag in a text, or of the text if no line of the source shows the tag."""
    return find_from(text.place, tag, text.value.count("\n") + 2) or text.place


def follow(node: Node | None, path: list[str]) -> Node | None:
    """The node at the end of a path, or None."""
    for step in path:
        if node is None:
            return None
        if isinstance(node.value, list):
            inside = re.fullmatch("[0-9]{1,9}", step) and int(step) < len(node.value)
            node = node.value[int(step)] if inside else None
        else:
            node = node.get(step)
    return node


def as_text(value: Any) -> str:
    """Plain data as text within another text."""
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False)
    return "" if value is None else js_text(value)


_SECRETS_UNKNOWN = Unknown("the values of the job's secrets, which the cluster keeps")
_NAMES = ("secrets", "parameters")


def expression_secrets(job: Job) -> Any:
    """The job's own secrets as its layer uses them: each value is a `Secret`."""
    if job.secrets_unknown:
        return _SECRETS_UNKNOWN
    return {} if job.secrets is None else _as_secrets(job.secrets.plain())


def _as_secrets(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _as_secrets(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_as_secrets(v) for v in value]
    return None if value is None else Secret(as_text(value))


def expression_parameters(job: Job) -> Any:
    """The job's parameters, with secrets inserted as in the job's commands."""
    return {} if job.parameters is None else _rendered(job.parameters.plain(), job.secrets)


def _rendered(value: Any, secrets: Node | None) -> Any:
    if isinstance(value, dict):
        return {k: _rendered(v, secrets) for k, v in value.items()}
    if isinstance(value, list):
        return [_rendered(v, secrets) for v in value]
    return render_secrets(value, secrets) if isinstance(value, str) else value


def check_layer_tags(layer: Node | None, problems: Problems) -> None:
    """Report tags of the job protocol in ``extras.pairun``, where they have no effect."""
    for leaf in leaves(layer) if layer else ():
        for tag in TAG.finditer(leaf.value) if isinstance(leaf.value, str) else ():
            if (key := tag_key(tag)) is not None:
                message = f"{tag[0]} is a tag of the job protocol, which is not replaced here"
                problems.error("PR306", message, tag_place(leaf, tag[0]), _instead(key))


def _instead(key: str) -> str:
    first, *path = tag_path(key)
    name = first.removeprefix("$")
    if name in _NAMES and path:
        return f"write an expression: {{{{ {'.'.join([name, *path])} }}}}"
    return f"expressions see {', '.join(_NAMES)}, job, cluster and results: {{{{ parameters.x }}}}"
