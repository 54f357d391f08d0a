"""Compares the policies of two stacks of roots, whatever the compared jobs use of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pairun.errors import Problems
from pairun.playbook.content import Content
from pairun.playbook.document.reading import Node
from pairun.review.diff.values import DEFAULT, Path, Value, ValueChange, changes

_DEFAULTS = ("pod", "defaults")
"""pairun stacks these, and every job shows the ones that it gets."""
_ABSENT: Mapping[Path, Any] = {
    ("plugin_folders", "roots"): "*",
    ("plugin_folders", "paths"): ["plugins"],
    ("job_yaml",): "js-yaml 3",
}
"""The values of a policy that does not have them."""


def diff_policy(old: Content, new: Content) -> Sequence[ValueChange]:
    """The values that differ between the policies in force."""
    return tuple(changes(_values(old), _values(new)))


def _values(content: Content) -> dict[Path, Value]:
    # Both sides are valid here, so no document has problems.
    documents = list(content.playbooks("policy", Problems()))
    values: dict[Path, Value] = {}

    def put(path: Path, node: Node) -> None:
        if path == _DEFAULTS:
            return
        if isinstance(node.value, dict):
            for key, inner in node.items():
                put((*path, key), inner)
        elif node.value != [] or path[0] != "job_may":  # an empty list allows as much as none
            value = node.plain()
            is_default = path in _ABSENT and value == _ABSENT[path]
            setter = DEFAULT if is_default else f"{node.place.source.layer} {node.place}"
            values[path] = Value(value=value, setter=setter)

    if documents:
        put((), documents[-1])
    return values
