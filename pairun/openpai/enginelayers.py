"""The changes that each way to start a Pod makes to the playbooks (layer ``engine``)."""

from __future__ import annotations

import os
from collections.abc import Mapping

from pairun.errors import Place, Source
from pairun.playbook.document.reading import Node, decode, load_bytes, node_of, read_text

BARRIER = "PAIRUN_BARRIER"
"""The variable with the barrier's backend."""


def engine_layer(file: str, name: str) -> Node:
    """The operations of one way to start; their place is the layer: users cannot open its file.

    Args:
        file: the description, in this module's folder.
        name: the layer's name in reviews.
    """
    data = load_bytes(os.path.join(os.path.dirname(__file__), file))
    node = read_text(decode(data, name, "engine"))
    return node_of(node.plain(), Place(node.place.source, 0, 0))


def barrier_layer(env: Mapping[str, str]) -> Node | None:
    """The barrier's backend that an engine sets in the Pod's environment; None if it sets none."""
    backend = env.get(BARRIER)
    if not backend:
        return None
    operations = [{"patch": "barrier", "args": {"backend": backend}}]
    return node_of({"init": operations}, Place(Source(BARRIER, "engine", ""), 0, 0))


def merged(low: Node | None, high: Node | None) -> Node | None:
    """Merge two layers of the engine into one; the higher one's operations come last."""
    if low is None or high is None or not isinstance(low.value, dict):
        return high if low is None else low
    both = dict(low.value)
    for phase, operations in high.items():
        below = both.get(phase)
        added = [*(below.elements() if below else ()), *operations.elements()]
        both[phase] = Node(added, operations.place, operations.key)
    return Node(both, low.place, low.key)
