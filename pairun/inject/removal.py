"""Removes pairun from a manifest."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pairun.base.foreignjson import parse_record
from pairun.inject.beside import remove_beside
from pairun.inject.maincontainer import containers_of
from pairun.inject.podspec import INIT, PROGRAM, SEPARATOR, VOLUME
from pairun.inject.splices import Splices
from pairun.inject.templates import owners_in, templates_of
from pairun.inject.tree import Mapping, Part, Sequence, Tree, target
from pairun.inject.variables import RECORD


def remove(tree: Tree) -> str:
    """The text without what `pairun inject` added.

    For unchanged output it restores the input byte for byte; else it gives the same objects.
    """
    splices = Splices(tree)
    done: set[int] = set()
    for document in tree.documents:
        for owner in owners_in(document):
            for template in templates_of(owner):
                if id(template.spec) not in done:
                    done.add(id(template.spec))
                    _clean(splices, template.spec)
    remove_beside(splices, tree)
    return splices.apply()


def record_of(spec: Mapping) -> dict[str, Any] | None:
    """The record of an injection in a Pod's spec; None if there is none."""
    init = _named(spec.get("initContainers"), INIT)
    variable = _named(init.get("env"), RECORD) if init else None
    value = variable.get("value") if variable else None
    record = parse_record(str(value.plain())) if value else None
    return record if record is not None and isinstance(record.get("was"), dict) else None


def _clean(splices: Splices, spec: Mapping) -> None:
    record = record_of(spec)
    if record is None:
        return
    was: dict[str, str | None] = record["was"]
    _clean_list(splices, spec, "initContainers", was, lambda item: _name(item) == INIT)
    _clean_list(splices, spec, "volumes", was, _is_ours)
    if "serviceAccountName" in was:
        _restore(splices, spec, "serviceAccountName", was)
    container = next((c for c in containers_of(spec) if _name(c) == record["container"]), None)
    if container is None:
        return
    _clean_list(splices, container, "volumeMounts", was, _is_ours)
    _clean_list(splices, container, "env", was, lambda item: _name(item) in record["env"])
    if "image" in was:
        _restore(splices, container, "image", was)
    if "command" in was:
        _restore(splices, container, "command", was)
    elif (entry := container.own("command")) and isinstance(entry.value, Sequence):
        words = entry.value.items
        if [w.plain() for w in words[:2]] == [PROGRAM, SEPARATOR]:
            splices.remove_items(entry.value, words[:2])


def _clean_list(
    splices: Splices,
    mapping: Mapping,
    key: str,
    was: dict[str, str | None],
    is_ours: Callable[[Part], bool],
) -> None:
    entry = mapping.own(key)
    if entry is None:
        return
    value = target(entry.value)
    items = value.items if isinstance(value, Sequence) else []
    ours = [item for item in items if is_ours(item)]
    text = was.get(key, "")
    if text:
        splices.replace(entry, text)
    elif len(ours) == len(items) and (text is None or not _is_flow(value)):
        splices.remove_entry(mapping, entry)
    elif key in was and text == "":
        splices.replace(entry, "")
    elif ours and isinstance(entry.value, Sequence):
        splices.remove_items(entry.value, ours)


def _is_flow(part: Part) -> bool:
    return isinstance(part, Sequence) and part.flow


def _restore(splices: Splices, mapping: Mapping, key: str, was: dict[str, str | None]) -> None:
    entry, text = mapping.own(key), was[key]
    if entry is None:
        return
    if text is None:
        splices.remove_entry(mapping, entry)
    else:
        splices.replace(entry, text)


def _is_ours(item: Part) -> bool:
    name = _name(item)
    return name == VOLUME or name.startswith(f"{VOLUME}-")


def _name(part: Part) -> str:
    part = target(part)
    name = part.get("name") if isinstance(part, Mapping) else None
    return str(name.plain()) if name else ""


def _named(part: Part | None, name: str) -> Mapping | None:
    return next((i for i in _mappings(part) if _name(i) == name), None)


def _mappings(part: Part | None) -> Iterator[Mapping]:
    for item in part.items if isinstance(part, Sequence) else ():
        if isinstance(item := target(item), Mapping):
            yield item
