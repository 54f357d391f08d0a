"""Renders the parameters of plugins: replaces tags in the tree, and never parses the result."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from pairun.errors import Place, Problems, did_you_mean
from pairun.job.model import Job, Role
from pairun.job.templates import TAG, as_text, chosen_prerequisites, follow, tag_key, tag_path
from pairun.module import Secret, reveal
from pairun.playbook.document.reading import Node


class TagScope(NamedTuple):
    """The names that tags in a plugin's parameters can use.

    Attributes:
        namespaces: ``$parameters`` and so on; None if the job or role does not have it.
        this: yields, for a prerequisite, itself, then those it requires, depth first.
        secrets_unknown: the values of the job's secrets are unknown, so their tags stay.
    """

    namespaces: Mapping[str, Node | None]
    this: Callable[[], Iterable[Node]] = tuple
    secrets_unknown: bool = False

    def look_up(self, key: str) -> tuple[Node | None, str]:
        """The node that a tag's key names, or None and the reason as text."""
        first, *path = tag_path(key)
        if first == "this":
            return self._inherited(path), "neither the prerequisite nor what it requires has it"
        if first not in self.namespaces:
            return None, did_you_mean(first, self.namespaces) or ""
        root = self.namespaces[first]
        if root is None:
            what = first[1:]
            kind = "this role has no" if what in {"script", "data", "output"} else "the job has no"
            return None, f"{kind} {what}"
        if (value := follow(root, path)) is not None:
            return value, ""
        return None, (did_you_mean(path[0], dict(root.items())) if path else None) or ""

    def _inherited(self, path: list[str]) -> Node | None:
        # `this.parameters.key` is the proposal's spelling for the prerequisite's own key.
        paths = [path, path[1:]] if path[:1] == ["parameters"] else [path]
        for node in self.this():
            for candidate in filter(None, paths):
                if (value := follow(node, candidate)) is not None:
                    return value
        return None


def role_scope(job: Job, role: Role, this: Callable[[], Iterable[Node]] = tuple) -> TagScope:
    """The scope of a role's plugins."""
    return TagScope(
        namespaces={
            "$parameters": job.parameters,
            "$secrets": job.secrets,
            **{
                f"${t}": chosen.node if chosen else None
                for t, chosen in chosen_prerequisites(role).items()
            },
        },
        this=this,
        secrets_unknown=job.secrets_unknown,
    )


def render_parameters(node: Node, scope: TagScope, problems: Problems) -> Node:
    """Replace the tags in a tree of parameters.

    A tag that is a whole text is replaced by the value with its type; others by its text. A text
    with a secret in it becomes a `Secret`. Tags without a ``$`` or ``this.`` do not change.
    """
    return _walk(node, lambda text: _render_text(text, scope, problems))


def _walk(node: Node, render: Callable[[Node], Node]) -> Node:
    value = node.value
    if isinstance(value, dict):
        value = {k: _walk(v, render) for k, v in value.items()}
    elif isinstance(value, list):
        value = [_walk(v, render) for v in value]
    elif isinstance(value, str) and "<%" in value:
        return render(node)
    else:
        return node
    return Node(value, node.place, node.key, node.overrides)


def _render_text(node: Node, scope: TagScope, problems: Problems) -> Node:
    whole = TAG.fullmatch(node.value)
    key = tag_key(whole) if whole else None
    if key is not None:
        value = _resolve(key, node, scope, problems)
        if value is None:
            return node
        return _moved(value, node.place, node.key, secret=_is_secret(key))
    touched = False

    def replace(tag: re.Match[str]) -> str:
        nonlocal touched
        key = tag_key(tag)
        value = None if key is None else _resolve(key, node, scope, problems)
        if key is None or value is None:
            return tag[0]
        touched = touched or _is_secret(key)
        return as_text(value.plain())

    rendered: str | Secret = TAG.sub(replace, node.value)
    if touched:
        rendered = Secret(reveal(rendered))
    return Node(rendered, node.place, node.key, node.overrides)


def _resolve(key: str, node: Node, scope: TagScope, problems: Problems) -> Node | None:
    value, reason = scope.look_up(key)
    if value is None and not (scope.secrets_unknown and _is_secret(key)):
        problems.error("PR510", f"nothing defines <% {key} %>", node.place, reason or None)
    return value


def _is_secret(key: str) -> bool:
    return tag_path(key)[0] == "$secrets"


def _moved(node: Node, place: Place, key: Place | None, *, secret: bool) -> Node:
    """A copy of a value at the place of its tag."""
    value = node.value
    if isinstance(value, dict):
        value = {k: _moved(v, place, place, secret=secret) for k, v in value.items()}
    elif isinstance(value, list):
        value = [_moved(v, place, None, secret=secret) for v in value]
    elif secret and value is not None:
        value = Secret(as_text(value))
    return Node(value, place, key)
