"""Compares the policies of two stacks of roots, whatever the compared jobs use of them."""

from __future__ import annotations

from collections.abc import Sequence

from pairun.errors import Problems
from pairun.playbook.content import Content
from pairun.playbook.document.reading import Node
from pairun.review.diff.values import Path, Value, ValueChange, changes

_DEFAULTS = ("pod", "defaults")
"""pairun stacks these, and every job shows the ones that it gets."""


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
            values[path] = Value(
                value=node.plain(), setter=f"{node.place.source.layer} {node.place}"
            )

    if documents:
        put((), documents[-1])
    return values
