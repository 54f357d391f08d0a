"""Reads a text to the trees of its documents, from libyaml's events in one loop."""

from __future__ import annotations

import re
from typing import Any

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
)

from pairun.errors import PairunError, Place, Source
from pairun.inject.tree import Alias, Entry, Mapping, Part, ScalarPart, Sequence, Tree, after_blanks
from pairun.playbook.document.scalars import CORE

_MAX_DEPTH = 100
MAX_VALUES = 200_000
"""The limit of one file; every alias counts as the parts it refers to."""

_SURROGATES = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}")


def read_tree(source: Source) -> Tree:
    """Read every document of a text.

    Raises:
        PairunError: it is not YAML, or too deep or too large.
    """
    # libyaml does not support surrogate pairs; the replacement has the same length.
    text = _SURROGATES.sub(r"\\u2603\\u2603", source.text)
    try:
        return Tree(source, _Reader(source, CParser(text)).documents())
    except yaml.MarkedYAMLError as e:
        mark = e.problem_mark or e.context_mark
        place = Place(source, mark.line + 1, mark.column + 1) if mark else None
        raise _refused(source, e.problem or e.context or "not YAML", place) from e
    except yaml.YAMLError as e:
        reason = getattr(e, "reason", None) or "a character that YAML does not allow"
        raise _refused(source, reason, None) from e


_HELM = "a Helm template is not a manifest: inject the output of `helm template`"


def _refused(source: Source, what: str, place: Place | None) -> PairunError:
    message = f"{source.file} is not YAML: {what}"
    return PairunError.of("PR101", message, place, _HELM if "{{" in source.text else None)


class _Reader:
    """Builds trees from events: one loop with an explicit stack."""

    def __init__(self, source: Source, parser: Any) -> None:
        self._source = source
        self._parser = parser
        self._anchors: dict[str, Part] = {}
        self._sizes: dict[int, int] = {}
        self._open: list[tuple[Part, list[Part]]] = []
        self._roots: list[Part] = []

    def documents(self) -> list[Part]:
        while self._parser.check_event():
            event = self._parser.get_event()
            if isinstance(event, DocumentStartEvent):
                self._anchors.clear()
            elif isinstance(event, ScalarEvent):
                self._close(event, self._scalar(event))
            elif isinstance(event, AliasEvent):
                self._close(event, self._alias(event))
            elif isinstance(event, CollectionStartEvent):
                self._begin(event)
            elif isinstance(event, CollectionEndEvent):
                part, children = self._open.pop()
                self._fill(part, children, event)
                self._close(event, part)
        return [r for r in self._roots if not (isinstance(r, ScalarPart) and r.value is None)]

    def _span(self, event: Event) -> tuple[int, int, Place]:
        start, end = event.start_mark, event.end_mark
        assert start is not None  # libyaml marks every event
        assert end is not None
        place = Place(self._source, start.line + 1, start.column + 1)
        return start.index, end.index, place

    def _begin(self, event: CollectionStartEvent) -> None:
        start, end, place = self._span(event)
        if len(self._open) >= _MAX_DEPTH:
            raise PairunError.of("PR104", f"nested more than {_MAX_DEPTH} levels deep", place)
        kind = Mapping if isinstance(event, MappingStartEvent) else Sequence
        part = kind(start, end, place, bool(event.flow_style))
        # An anchor is defined only after its collection ends, so that nothing contains itself.
        self._open.append((part, []))
        if event.anchor:
            self._anchors.pop(event.anchor, None)
            self._named(event, part)

    def _named(self, event: NodeEvent, part: Part) -> None:
        if event.anchor:
            self._anchors[event.anchor] = part

    def _fill(self, part: Part, children: list[Part], event: Event) -> None:
        seen: set[Any] = set()
        if isinstance(part, Mapping):
            for key, value in zip(children[::2], children[1::2], strict=True):
                if not isinstance(key, ScalarPart):
                    hint = _HELM if "{{" in self._source.text else None
                    raise PairunError.of("PR107", "a key must be text", key.place, hint)
                if key.value in seen and key.value != "<<":
                    message = f"the key '{key.value}' is given twice"
                    raise PairunError.of("PR106", message, key.place)
                seen.add(key.value)
                part.entries.append(Entry(key, value))
        elif isinstance(part, Sequence):
            part.items = children
        if isinstance(part, Mapping | Sequence):
            if part.flow:
                part.end = self._span(event)[1]
            elif children:
                first = children[0]
                part.end = children[-1].end
                if isinstance(part, Mapping):
                    part.start = first.start
                else:
                    # If the list has an anchor, the event starts there.
                    part.start = after_blanks(self._source.text, part.start, named=True)

    def _scalar(self, event: ScalarEvent) -> ScalarPart:
        start, end, place = self._span(event)
        plain = (event.tag in (None, "!")) and event.implicit[0] and not event.style
        value = _as_kubectl_reads(event.value) if plain else event.value
        scalar = ScalarPart(start, end, place, value)
        if event.style in ("|", ">"):
            scalar.is_block = True
            header = self._source.text[start:end].split("\n", 1)[0].split("#", 1)[0]
            scalar.keeps = "+" in header
            scalar.end = start + len(self._source.text[start:end].rstrip())
        self._named(event, scalar)
        return scalar

    def _alias(self, event: AliasEvent) -> Alias:
        start, end, place = self._span(event)
        part = self._anchors.get(event.anchor or "")
        if part is None or any(part is open_ for open_, _ in self._open):
            what = "contains itself" if part else "is not anchored"
            raise PairunError.of("PR101", f"the alias {what}", place)
        return Alias(start, end, place, part)

    def _close(self, event: Event, part: Part) -> None:
        children = (
            [e.value for e in part.entries]
            if isinstance(part, Mapping)
            else part.items
            if isinstance(part, Sequence)
            else [part.part]
            if isinstance(part, Alias)
            else []
        )
        size = 1 + sum(self._sizes[id(child)] for child in children)
        self._sizes[id(part)] = size
        if size > MAX_VALUES:
            raise PairunError.of(
                "PR105", f"the aliases expand to more than {MAX_VALUES} values", part.place
            )
        (self._open[-1][1] if self._open else self._roots).append(part)


_OLD_BOOLEANS = {"yes": True, "on": True, "no": False, "off": False}


def _as_kubectl_reads(text: str) -> Any:
    """Read an unquoted scalar as YAML 1.2, with the octal numbers and booleans of YAML 1.1.

    pairun writes out lists that come by an alias, and a file mode of 0400 must not change.
    """
    if re.fullmatch("0[0-7]+", text):
        return int(text, 8)
    if text.lower() in _OLD_BOOLEANS:
        return _OLD_BOOLEANS[text.lower()]
    return CORE.resolve(text)
