"""Reads objects of Kubernetes: what ``kubectl get ... -o json`` or ``-o yaml`` prints.

Source: Kubernetes API reference, Pod, Node, Event and List; FrameworkController's Framework.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

MAX_BYTES = 64 << 20

_MAX_YAML_BYTES = 8 << 20
_MAX_OBJECTS = 20000
_KINDS = frozenset(("Pod", "Node", "Event", "Framework"))
_JSON = re.compile(rb'\s*[\[{][^\0]{0,400}?"(?:apiVersion|kind)": ?"')
_YAML = re.compile(rb"(?m)\A(?:---\s*\n|#[^\n]*\n)*(?:- )?(?:apiVersion|kind): \S")


class ClusterObject(NamedTuple):
    """An object of Kubernetes in a file.

    Attributes:
        kind: ``Pod``, ``Node``, ``Event`` or ``Framework``.
        data: the object, as the API server has it.
        file: the file name for people.
        line: the first line with the object's name; 1 if there is none.
    """

    kind: str
    data: Mapping[str, Any]
    file: str
    line: int

    def part(self, *names: str) -> Mapping[str, Any]:
        """A mapping inside the object; empty if it is missing or of another type."""
        value: Any = self.data
        for name in names:
            value = value.get(name) if isinstance(value, dict) else None
        return value if isinstance(value, dict) else {}

    @property
    def name(self) -> str:
        """The object's name."""
        return str(self.part("metadata").get("name") or "")


def may_be_objects(head: bytes) -> bool:
    """Whether a file that begins so may hold objects."""
    return _JSON.match(head) is not None or _YAML.match(head) is not None


def objects_in(data: bytes, file: str) -> list[ClusterObject]:
    """The objects in a file, also in Lists and in several documents; empty if there are none.

    Args:
        data: the file.
        file: its name for people.
    """
    documents = _from_json(data) if data.lstrip()[:1] in (b"{", b"[") else _from_yaml(data)
    found: list[ClusterObject] = []
    at = 0
    for item in _items(documents):
        kind, meta = item.get("kind"), item.get("metadata")
        if kind not in _KINDS or not isinstance(meta, dict) or len(found) >= _MAX_OBJECTS:
            continue
        name = re.escape(str(meta.get("name") or "")).encode()
        match = re.compile(rb'"?name"?: ?"?' + name + rb'"?,?[ \r]*$', re.MULTILINE).search(
            data, at
        )
        if match is not None:
            at = match.end()
        line = data.count(b"\n", 0, match.start()) + 1 if match else 1
        found.append(ClusterObject(str(kind), item, file, line))
    return found


def _items(documents: Iterator[Any]) -> Iterator[Mapping[str, Any]]:
    for document in documents:
        parts = document if isinstance(document, list) else [document]
        for part in parts:
            if not isinstance(part, dict):
                continue
            items = part.get("items")
            # a List of one kind may leave out the kind of its items
            kind = str(part.get("kind") or "").removesuffix("List")
            for item in items if isinstance(items, list) else [part]:
                if isinstance(item, dict):
                    yield {"kind": kind, **item}


def _from_json(data: bytes) -> Iterator[Any]:
    """Objects one after another, as ``kubectl get --watch -o json`` prints them."""
    text = data.decode("utf-8", "replace")
    decoder = json.JSONDecoder()
    at = 0
    while start := re.compile(r"[\[{]").search(text, at):
        try:
            document, at = decoder.raw_decode(text, start.start())
        except (ValueError, RecursionError):
            return
        yield document


def _from_yaml(data: bytes) -> Iterator[Any]:
    if len(data) > _MAX_YAML_BYTES:
        return
    # imported here: few folders hold YAML
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        yield from yaml.load_all(data, Loader=loader)
    except (yaml.YAMLError, RecursionError, ValueError):
        return
