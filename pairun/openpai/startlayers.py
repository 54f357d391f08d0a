"""The changes that a way to start a Pod makes in the playbooks (layer ``engine``)."""

from __future__ import annotations

import os

from pairun.errors import Place
from pairun.playbook.document.reading import Node, decode, load_bytes, node_of, read_text


def start_layer(file: str, name: str) -> Node:
    """The operations of one way to start; their place is the layer, whose file a user cannot open.

    Args:
        file: the description, beside this module.
        name: the layer's name in reviews.
    """
    data = load_bytes(os.path.join(os.path.dirname(__file__), file))
    node = read_text(decode(data, name, "engine"))
    return node_of(node.plain(), Place(node.place.source, 0, 0))


def merged(low: Node | None, high: Node | None) -> Node | None:
    """Two layers of the engine as one; the operations of the higher one come last."""
    if low is None or high is None or not isinstance(low.value, dict):
        return high if low is None else low
    both = dict(low.value)
    for phase, operations in high.items():
        below = both.get(phase)
        added = [*(below.elements() if below else ()), *operations.elements()]
        both[phase] = Node(added, operations.place, operations.key)
    return Node(both, low.place, low.key)
