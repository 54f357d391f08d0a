"""The changes that each way to start a Pod makes to the playbooks (layer ``engine``)."""

from __future__ import annotations

import os

from pairun.errors import Place
from pairun.playbook.document.reading import Node, decode, load_bytes, node_of, read_text


def start_layer(file: str, name: str) -> Node:
    """The operations of one way to start; their place is the layer: users cannot open its file.

    Args:
        file: the description, in this module's folder.
        name: the layer's name in reviews.
    """
    data = load_bytes(os.path.join(os.path.dirname(__file__), file))
    node = read_text(decode(data, name, "engine"))
    return node_of(node.plain(), Place(node.place.source, 0, 0))


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
