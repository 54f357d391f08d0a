"""Reads YAML and JSON text to a tree in which every key and value has its place.

One loop without recursion reads the text as a stream of events (libyaml's, through PyYAML's C
parser), so that depth, size and aliases are bounded before anything is built. Playbooks are
YAML 1.2 core plus ``<<``; job files follow js-yaml 3's default schema, because OpenPAI's REST
server reads them with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import yaml
from yaml._yaml import CParser
from yaml.events import (
    AliasEvent,
    CollectionEndEvent,
    CollectionStartEvent,
    DocumentStartEvent,
    Event,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
    SequenceStartEvent,
)

from pairun.errors import PairunError, Place, Problem, Problems, Source
from pairun.playbook.document.scalars import CORE, Dialect, Scalar, Timestamp, js_text
from pairun.playbook.document.texts import MAX_DOCUMENT_BYTES, decode, load_bytes
from pairun.playbook.document.yamlmistakes import likely_mistake
from pairun.secrets.shapes import plain_secrets, yaml_lines

__all__ = [
    "MAX_DOCUMENT_BYTES", "Node", "decode", "elements", "entries", "load_bytes", "node_of", "read_file", "read_text", "text", "whole",
]  # fmt: skip

MAX_DOCUMENT_DEPTH = 64
MAX_ALIASED_NODES = 10_000


class Node:
    """A value and its place in the text.

    Attributes:
        value: a scalar, a list of nodes, or a dict from text to node.
        key: the place of its key, for a mapping's entry.
        overrides: the node of a lower layer that this one replaces.
    """

    __slots__ = ("key", "overrides", "place", "value")

    def __init__(
        self, value: Any, place: Place, key: Place | None = None, overrides: Node | None = None
    ) -> None:
        self.value = value
        self.place = place
        self.key = key
        self.overrides = overrides

    @property
    def head(self) -> Place:
        """The place to point at: of its key, or of the value if it has none."""
        return self.key or self.place

    def get(self, key: str) -> Node | None:
        """The entry of a mapping, or None."""
        return self.value.get(key) if isinstance(self.value, dict) else None

    def items(self) -> Iterator[tuple[str, Node]]:
        """The entries of a mapping; empty for anything else."""
        return iter(self.value.items()) if isinstance(self.value, dict) else iter(())

    def elements(self) -> list[Node]:
        """The elements of a list; empty for anything else."""
        return self.value if isinstance(self.value, list) else []

    def plain(self) -> Any:
        """The same tree without places."""
        if isinstance(self.value, dict):
            return {k: v.plain() for k, v in self.value.items()}
        if isinstance(self.value, list):
            return [v.plain() for v in self.value]
        return self.value

    def at(self, path: tuple[str | int, ...]) -> Node | None:
        """The node at a path of keys and indices, or None."""
        node: Node | None = self
        for step in path:
            if node is None:
                return None
            if isinstance(step, int):
                elements = node.elements()
                node = elements[step] if step < len(elements) else None
            else:
                node = node.get(step)
        return node

    def __repr__(self) -> str:
        return f"Node({self.plain()!r} at {self.place})"


def node_of(value: Any, place: Place) -> Node:
    """A tree of plain data, with every node at one place."""
    if isinstance(value, dict):
        return Node({str(k): node_of(v, place) for k, v in value.items()}, place, place)
    if isinstance(value, list | tuple):
        return Node([node_of(v, place) for v in value], place)
    return Node(value, place)


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


def read_file(path: str, layer: str, dialect: Dialect = CORE) -> Node:
    """Read one document from a file (``-``: standard input).

    Raises:
        PairunError: the file cannot be read, is not UTF-8, not YAML, or exceeds a limit.
    """
    return read_text(decode(load_bytes(path), path, layer), dialect)


def read_text(source: Source, dialect: Dialect = CORE) -> Node:
    """Read the one document of a text.

    Raises:
        PairunError: the text is not YAML (reports the first error only), or exceeds limits or has
            duplicate keys (reports all).
    """
    try:
        document = _Reader(source, dialect).document()
        _conceal(document)
        return document
    except yaml.YAMLError as e:
        joined = _SURROGATES.sub(_joined, source.text)
        if joined == source.text or "Unicode character escape" not in str(e):
            raise PairunError(_not_yaml(e, source)) from e
        return read_text(Source(source.file, source.layer, joined), dialect)


def _conceal(document: Node) -> None:
    """Mark passwords and other secrets in the text, so that no message shows them.

    Values of ``parameters`` are public, whatever their names; logins in addresses are not.
    """
    todo = [(key, child, key != "parameters") for key, child in document.items()]
    seen: set[int] = set()
    while todo:
        key, node, named = todo.pop()
        if isinstance(node.value, dict | list):
            if id(node.value) not in seen:
                seen.add(id(node.value))
                todo += [(k, child, named) for k, child in node.items()]
                todo += [(key, child, named) for child in node.elements()]
        elif concealed := list(plain_secrets(key if named else "", node.value)):
            node.place.source.conceal(concealed)
            node.place.source.hide(node.place.line, node.place.line)


_SURROGATES = re.compile(r"\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})")


def _joined(pair: re.Match[str]) -> str:
    """One escape for JSON's two of a character beyond U+FFFF; libyaml does not support pairs."""
    high, low = int(pair[1], 16), int(pair[2], 16)
    return f"\\U{0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00):08x}"


def _not_yaml(e: yaml.YAMLError, source: Source) -> Problem:
    hint = None
    if isinstance(e, yaml.MarkedYAMLError):
        mark = e.problem_mark or e.context_mark
        what = e.problem or e.context or "not YAML"
        place = Place(source, mark.line + 1, mark.column + 1) if mark else Place(source, 1, 1)
        secret = not source.line(place.line)
        lines = yaml_lines(source.text)
        hint = likely_mistake(what, lines, place.line, place.column, secret=secret)
    else:
        what = getattr(e, "reason", None) or "a character that YAML does not allow"
        before = source.text[: getattr(e, "position", 0) or 0]
        place = Place(source, before.count("\n") + 1, len(before) - before.rfind("\n"))
    return Problem("PR101", f"{source.file} is not YAML: {what}", place, hint)


class _Parser(CParser):
    """libyaml's event stream; events keep the text as written, and pairun resolves the tags."""


class _Reader:
    """Builds nodes from events: one loop, an explicit stack."""

    def __init__(self, source: Source, dialect: Dialect) -> None:
        self._source = source
        self._resolve = dialect.resolve
        self._parser = _Parser(source.text)
        self._anchors: dict[str, Node] = {}
        self._extents: dict[int, _Extent] = {}
        self._open: set[int] = set()
        self._aliased = 0
        self._problems = Problems()

    def document(self) -> Node:
        root: Node | None = None
        stack: list[_Open] = []
        documents = 0
        while self._parser.check_event():
            event = self._parser.get_event()
            if isinstance(event, DocumentStartEvent):
                documents += 1
                if documents > 1:
                    message = f"{self._source.file} holds more than one document"
                    hint = "move the text after the '---' to a separate file"
                    raise PairunError.of("PR109", message, self._place(event), hint)
                continue
            node: Node | None = None
            if isinstance(event, ScalarEvent):
                node = Node(self._scalar(event), self._place(event))
                self._anchor(event, node)
                if event.value == "<<" and event.tag is None and not event.style and stack:
                    # A quoted `<<` is a plain key and merges nothing.
                    stack[-1].expects_merge = stack[-1].key is None
            elif isinstance(event, AliasEvent):
                node = self._alias(event, len(stack))
            elif isinstance(event, MappingStartEvent | SequenceStartEvent):
                self._check_depth(len(stack) + 1, event)
                made = Node({} if isinstance(event, MappingStartEvent) else [], self._place(event))
                self._check_tag(event)
                self._anchor(event, made)
                stack.append(_Open(made))
                self._open.add(id(made.value))
                continue
            elif isinstance(event, CollectionEndEvent):
                closed = stack.pop()
                self._open.discard(id(closed.node.value))
                self._merge(closed)
                node = closed.node
            if node is None:
                continue
            if stack:
                self._add(stack[-1], node)
            else:
                root = node
        self._problems.raise_errors()
        return root or Node(None, Place(self._source, 1, 1))

    def _place(self, event: Event) -> Place:
        mark = event.start_mark
        assert mark is not None  # libyaml marks every event
        return Place(self._source, mark.line + 1, mark.column + 1)

    def _check_depth(self, depth: int, event: Event) -> None:
        if depth > MAX_DOCUMENT_DEPTH:
            message = f"{self._source.file} is nested more than {MAX_DOCUMENT_DEPTH} levels deep"
            raise PairunError.of("PR104", message, self._place(event))

    def _anchor(self, event: NodeEvent, node: Node) -> None:
        if event.anchor:
            self._anchors[event.anchor] = node

    def _alias(self, event: AliasEvent, depth: int) -> Node:
        target = self._anchors.get(event.anchor or "")
        if target is None or id(target.value) in self._open:
            what = "contains itself" if target else "is not anchored"
            message = f"{self._source.file} is not YAML: {self._named(event, event.anchor)} {what}"
            hint = "an alias (*name) needs an anchor (&name) that ended before it"
            raise PairunError.of("PR101", message, self._place(event), hint)
        extent = self._extent(target)
        self._check_depth(depth + extent.depth, event)
        self._aliased += extent.nodes
        if self._aliased > MAX_ALIASED_NODES:
            message = (
                f"the aliases of {self._source.file} expand to more than {MAX_ALIASED_NODES} values"
            )
            raise PairunError.of("PR105", message, self._place(event))
        return Node(target.value, target.place)

    def _extent(self, node: Node) -> _Extent:
        # An anchor's extent is known when its collection is closed, and then cached; no node is
        # shared before that.
        if not isinstance(node.value, dict | list):
            return _SCALAR
        known = self._extents.get(id(node.value))
        if known is None:
            children = node.value.values() if isinstance(node.value, dict) else node.value
            extents = [self._extent(child) for child in children]
            known = _Extent(
                1 + sum(e.nodes for e in extents), 1 + max((e.depth for e in extents), default=0)
            )
            self._extents[id(node.value)] = known
        return known

    def _add(self, parent: _Open, node: Node) -> None:
        container = parent.node.value
        if isinstance(container, list):
            container.append(node)
            return
        if parent.key is None:
            parent.key = node
            return
        key, parent.key = parent.key, None
        if isinstance(key.value, dict | list):
            self._problems.error("PR107", "a key must be text", key.place, _unquoted(key))
            return
        name = key.value if type(key.value) is str else js_text(key.value)
        node.key = key.place
        if parent.expects_merge:
            parent.expects_merge = False
            parent.merges.append(node)
        elif name in container:
            first = container[name].head
            message = f"the key '{name}' is given twice"
            self._problems.error("PR106", message, key.place, also=[("first given here", first)])
        else:
            container[name] = node

    def _merge(self, closed: _Open) -> None:
        for merge in closed.merges:
            for source in merge.value if isinstance(merge.value, list) else [merge]:
                if not isinstance(source.value, dict):
                    self._problems.error(
                        "PR107", "'<<' takes a mapping or a list of mappings", merge.place
                    )
                    continue
                for name, node in source.items():
                    closed.node.value.setdefault(name, node)

    def _named(self, event: Event, word: str | None) -> str:
        """A word of the text for a message, or a placeholder if its line may hold a secret."""
        place = self._place(event)
        if word and not place.source.line(place.line):
            place.source.conceal([word])
            return "a name that is not shown"
        return f"'{word}'"

    def _tag(self, event: CollectionStartEvent | ScalarEvent) -> str:
        place = self._place(event)
        if place.source.line(place.line):
            return f"the tag {_short(event.tag)}"
        # YAML reads a secret that starts with '!' as a tag.
        place.source.conceal([(event.tag or "").lstrip("!")])
        return "a tag"

    def _check_tag(self, event: CollectionStartEvent) -> None:
        plain = {None, "!", "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"}
        if event.tag not in plain:
            self._problems.error(
                "PR107", f"{self._tag(event)} is not supported", self._place(event)
            )

    def _scalar(self, event: ScalarEvent) -> Scalar:
        text: str = event.value
        if event.tag is None or event.tag == "!":
            plain = event.implicit[0] and not event.style
            return self._resolve(text) if plain else text
        kind = _short(event.tag)
        if kind == "!!str":
            return text
        value = self._resolve(text)
        types = {"!!int": int, "!!float": (int, float), "!!bool": bool, "!!null": type(None)}
        if kind == "!!timestamp" and isinstance(value, Timestamp):
            return value
        if kind in types and isinstance(value, types[kind]):  # type: ignore[arg-type]
            return float(value) if kind == "!!float" and isinstance(value, int) else value
        self._problems.error(
            "PR107",
            f"{self._named(event, text[:40])} is not a {kind}"
            if kind in types
            else f"{self._tag(event)} is not supported",
            self._place(event),
        )
        return text


def _unquoted(key: Node) -> str | None:
    """Detect ``{{ x }}``, which YAML reads as nested mappings; the author meant an expression."""
    if isinstance(key.value, dict) and len(key.value) == 1:
        name, node = next(iter(key.value.items()))
        if node.value is None:
            return f"quote it: '{{{{ {name} }}}}'"
    return None


class _Extent(NamedTuple):
    """The size of what an alias expands to.

    Attributes:
        nodes: how many values.
        depth: levels of collections; 0 for a scalar.
    """

    nodes: int
    depth: int


_SCALAR = _Extent(1, 0)


class _Open:
    """A collection that is being read."""

    __slots__ = ("expects_merge", "key", "merges", "node")

    def __init__(self, node: Node) -> None:
        self.node = node
        self.key: Node | None = None
        self.expects_merge = False
        self.merges: list[Node] = []


def _short(tag: str | None) -> str:
    return (tag or "").replace("tag:yaml.org,2002:", "!!")
