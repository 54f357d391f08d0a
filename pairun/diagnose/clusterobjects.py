"""Reads objects of Kubernetes: what ``kubectl get ... -o json`` or ``-o yaml`` prints.

Source: Kubernetes API reference, Pod, Node, Event and List; FrameworkController's Framework.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from pairun.base.foreignjson import parse_json_at

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
        text: the part of the file from the object to the next one; empty if it was not found.
        text_line: the line with which that begins.
    """

    kind: str
    data: Mapping[str, Any]
    file: str
    line: int
    text: bytes = b""
    text_line: int = 1

    def part(self, *names: str) -> Mapping[str, Any]:
        """A mapping inside the object; empty if it is missing or of another type."""
        value: Any = self.data
        for name in names:
            value = value.get(name) if isinstance(value, dict) else None
        return mapping(value)

    def line_of(self, key: str, value: object) -> int:
        """The line that states a reason, a message or an exit code; else that of the object's name.

        Args:
            key: ``reason``, ``message``, ``note`` or ``exitCode``.
            value: its value.
        """
        # a long text in YAML has several lines
        words = [re.escape(word).replace('"', r'\\?"') for word in str(value).split()[:3]]
        start = rf'\b{key}"?:\s*(?:[>|][-+]?\s*)?["\']?' + r"\s+".join(words)
        match = re.search(start.encode(), self.text) if words else None
        if match is None:
            return self.line
        return self.text_line + self.text.count(b"\n", 0, match.end())

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
    is_json = data.lstrip()[:1] in (b"{", b"[")
    documents = _from_json(data) if is_json else _from_yaml(data)
    after_name = rb'"\s*[,}]' if is_json else rb'"?[ \r]*$'
    items: list[Mapping[str, Any]] = []
    names: list[tuple[int, int]] = []
    at = 0
    for item in _items(documents):
        kind, meta = item.get("kind"), item.get("metadata")
        if kind == "Event" and meta is None:
            # a shortened Event; what it is about has a name
            meta = item.get("involvedObject") or item.get("regarding")
        if (
            not isinstance(kind, str)
            or kind not in _KINDS
            or not isinstance(meta, dict)
            or len(items) >= _MAX_OBJECTS
        ):
            continue
        name = re.escape(str(meta.get("name") or "")).encode()
        named = re.compile(rb'"?name"?: ?"?' + name + after_name, re.MULTILINE)
        match = named.search(data, at)
        start = -1
        if match is not None:
            # the keys are in the order of the alphabet: what precedes apiVersion is of the last object
            start = max(data.rfind(b"apiVersion", at, match.start()), at)
            at = match.end()
        items.append(item)
        names.append((start, match.start() if match is not None else -1))
    ends = [*(start for start, _ in names), len(data)][1:]
    objects = []
    for item, (first, named_at), end in zip(items, names, ends, strict=True):
        line, text_line = (data.count(b"\n", 0, max(at, 0)) + 1 for at in (named_at, first))
        text = data[first : end if end > first else len(data)] if first >= 0 else b""
        objects.append(ClusterObject(str(item["kind"]), item, file, line, text, text_line))
    return objects


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
    at = 0
    while start := re.compile(r"[\[{]").search(text, at):
        try:
            document, at = parse_json_at(text, start.start())
        except ValueError:
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


def mapping(value: Any) -> Mapping[str, Any]:
    """A mapping in an object; empty if it is of another type."""
    return value if isinstance(value, dict) else {}


def mappings(value: Any) -> list[Mapping[str, Any]]:
    """The mappings in a list of an object; empty if it is of another type."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
