"""Typed access to the children of a document's nodes, whatever the document contains."""

from __future__ import annotations

from collections.abc import Iterator

from pairun.playbook.document.reading import Node


def entries(node: Node | None, key: str) -> Iterator[tuple[str, Node]]:
    """The entries of the mapping under a key; empty if there is no mapping."""
    child = node.get(key) if node else None
    return child.items() if child else iter(())


def elements(node: Node | None, key: str) -> list[Node]:
    """The elements of the list under a key; empty if there is no list."""
    child = node.get(key) if node else None
    return child.elements() if child else []


def text(node: Node, key: str) -> str | None:
    """The text under a key, or None."""
    child = node.get(key)
    return child.value if child and isinstance(child.value, str) else None


def whole(node: Node, *path: str) -> int | None:
    """The whole number under a path, or None; as in JavaScript, ``2.0`` is a whole number."""
    child = node.at(path)
    return int(child.value) if child and child.value is not None else None
