"""Removes pairun from a manifest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pairun.base.foreignjson import parse_record
from pairun.inject.beside import remove_beside
from pairun.inject.podspec import INIT, PROGRAM, SCHEDULING_GROUP, SEPARATOR, VOLUME
from pairun.inject.splices import Splices
from pairun.inject.templates import owners_in, templates_of
from pairun.inject.tree import Mapping, Part, Sequence, Tree, mappings_in, name_of, target
from pairun.openpai.enginelayers import RECORD


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
    _clean_list(splices, spec, "initContainers", was, lambda item: name_of(item) == INIT)
    _clean_list(splices, spec, "volumes", was, _is_ours)
    for key in ("serviceAccountName", SCHEDULING_GROUP):
        _restore(splices, spec, key, was)
    name = record["container"] or ""
    containers = mappings_in(spec.get("containers"))
    container = next((c for c in containers if name_of(c) == name), None)
    if container is None:
        return
    _clean_list(splices, container, "volumeMounts", was, _is_ours)
    _clean_list(splices, container, "env", was, lambda item: name_of(item) in record["env"])
    _restore(splices, container, "image", was)
    _restore(splices, container, "command", was)
    entry = container.own("command")
    if "command" not in was and entry and isinstance(entry.value, Sequence):
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
    is_flow = isinstance(value, Sequence) and value.flow
    text = was.get(key, "")
    if text:
        splices.replace(entry, text)
    elif len(ours) == len(items) and (text is None or not is_flow):
        splices.remove_entry(mapping, entry)
    elif key in was and text == "":
        splices.replace(entry, "")
    elif ours and isinstance(entry.value, Sequence):
        splices.remove_items(entry.value, ours)


def _restore(splices: Splices, mapping: Mapping, key: str, was: dict[str, str | None]) -> None:
    entry, text = mapping.own(key), was.get(key)
    if entry is None or key not in was:
        return
    if text is None:
        splices.remove_entry(mapping, entry)
    else:
        splices.replace(entry, text)


def _is_ours(item: Part) -> bool:
    name = name_of(item)
    return name == VOLUME or name.startswith(f"{VOLUME}-")


def _named(part: Part | None, name: str) -> Mapping | None:
    return next((i for i in mappings_in(part) if name_of(i) == name), None)
