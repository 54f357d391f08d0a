"""Compares two versions of a document: an edit must change only what it is meant to change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pairun.errors import Problems, Source
from pairun.inject.beside import without_beside
from pairun.inject.tree import Mapping, Part, Sequence, Tree, target
from pairun.inject.treereading import read_tree

Path = tuple[str | int, ...]

_OF_SPEC = ("initContainers", "volumes", "serviceAccountName")
_OF_CONTAINER = ("command", "env", "volumeMounts", "image")


def check_edits(tree: Tree, made: str, edited: list[Mapping], problems: Problems) -> None:
    """Refuse an edit that changed more than the edited Pods: anchors may share text with others.

    Args:
        tree: the text before the edits.
        made: the text after them.
        edited: the specs and the main containers that were edited.
        problems: takes an error.
    """
    ids = {id(part) for part in edited}
    after = read_tree(Source(tree.source.file, tree.source.layer, made))
    for before, now in zip(tree.documents, without_beside(after), strict=False):
        allowed = frozenset(_paths(before, ids, ()))
        for path in _differences(before.plain(), now, (), allowed):
            problems.error(
                "PR822",
                f"an anchor shares text of a Pod with {'.'.join(map(str, path))}, which must not "
                "change",
                before.place,
                "write what the alias names where it is used",
            )
            return


def _paths(part: Part, edited: set[int], path: Path) -> Iterator[Path]:
    """The paths that an edit may change."""
    part = target(part)
    if isinstance(part, Mapping):
        if id(part) in edited:
            for key in _OF_SPEC if part.get("containers") else _OF_CONTAINER:
                yield (*path, key)
        for key in part.plain():
            child = part.get(key)
            if child is not None:
                yield from _paths(child, edited, (*path, key))
    elif isinstance(part, Sequence):
        for number, item in enumerate(part.items):
            yield from _paths(item, edited, (*path, number))


def _differences(a: Any, b: Any, path: Path, allowed: frozenset[Path]) -> Iterator[Path]:
    if path in allowed:
        return
    if isinstance(a, dict) and isinstance(b, dict):
        for key in dict.fromkeys((*a, *b)):
            if key not in a or key not in b:
                if (*path, key) not in allowed:
                    yield (*path, key)
            else:
                yield from _differences(a[key], b[key], (*path, key), allowed)
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for number, (x, y) in enumerate(zip(a, b, strict=True)):
            yield from _differences(x, y, (*path, number), allowed)
    elif a != b or type(a) is not type(b):
        yield path
