"""Finds the Pod templates in a document by structure; the table of kinds describes them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import attrs

from pairun.base.fields import Path
from pairun.inject.kinds import RAY_GROUPS, RAY_RULE, InjectedKind, RoleRule, kind_of
from pairun.inject.tree import Mapping, Part, Sequence, target


class TemplateOwner(NamedTuple):
    """The object that holds a template.

    Attributes:
        kind: the object's kind.
        known: the table's entry of the kind, or None.
        name: the object's name; empty if the API server generates it.
        root: the object.
        data: the object as plain data.
    """

    kind: str
    known: InjectedKind | None
    name: str
    root: Mapping
    data: dict[str, Any]

    @property
    def label(self) -> str:
        """The object in messages."""
        return f"{self.kind} {self.name}" if self.name else self.kind

    @property
    def metadata(self) -> dict[str, Any]:
        """The object's metadata."""
        return mapping_at(self.data, ("metadata",))


@attrs.frozen(kw_only=True)
class Template:
    """One Pod template.

    Attributes:
        owner: the object that holds it.
        path: of the mapping that has the Pod's ``spec``, within the object.
        spec: the Pod's spec.
        rule: the table's rule for it, or None.
        matched: what the rule's ``*`` matched, or the item's name.
        item: the data of what the ``*`` matched; without one, of what holds the template. The
            paths of the rule's ``count`` start there.
    """

    owner: TemplateOwner
    path: Path
    spec: Mapping
    rule: RoleRule | None
    matched: str
    item: dict[str, Any]

    @property
    def label(self) -> str:
        """The template in messages: its place and its object."""
        steps = "".join(f"[{s}]" if isinstance(s, int) else f".{s}" for s in self.path)
        return f"{self.owner.label}{': ' + steps[1:] if steps else ''}"

    @property
    def role(self) -> str:
        """The name of its role in the gang."""
        return self.rule.name.replace("*", self.matched.lower()) if self.rule else "worker"

    @property
    def names(self) -> tuple[str, ...]:
        """The names by which an option may name it: its role's and its object's."""
        return self.matched, self.role, self.owner.name

    @property
    def metadata(self) -> dict[str, Any]:
        """The metadata of the Pod template."""
        return mapping_at(self.owner.data, (*self.path, "metadata"))


def owners_in(document: Part) -> Iterator[TemplateOwner]:
    """Every object of a document, including nested ones, outer objects first."""
    for part in _parts(document):
        kind, version = part.get("kind"), part.get("apiVersion")
        if kind is None or version is None:
            continue
        name, versioned = kind.plain(), version.plain()
        if not (isinstance(name, str) and isinstance(versioned, str)):
            continue
        metadata = part.get("metadata")
        given = metadata.get("name") if isinstance(metadata, Mapping) else None
        known = kind_of(versioned, name)
        yield TemplateOwner(name, known, str(given.plain()) if given else "", part, part.plain())


def templates_of(owner: TemplateOwner) -> Iterator[Template]:
    """The Pod templates of an object, without those of nested objects."""
    yield from _search(owner, owner.root, ())


def _parts(part: Part) -> Iterator[Mapping]:
    part = target(part)
    if isinstance(part, Mapping):
        yield part
        for entry in part.entries:
            yield from _parts(entry.value)
    elif isinstance(part, Sequence):
        for item in part.items:
            yield from _parts(item)


def _search(owner: TemplateOwner, part: Part, path: Path) -> Iterator[Template]:
    part = target(part)
    if isinstance(part, Sequence):
        for number, item in enumerate(part.items):
            yield from _search(owner, item, (*path, number))
        return
    if not isinstance(part, Mapping):
        return
    if path and part.own("kind") and part.own("apiVersion"):
        return  # a nested object
    spec = part.get("spec")
    if isinstance(spec, Mapping) and isinstance(spec.get("containers"), Sequence):
        yield _template(owner, path, spec)
        return
    for entry in part.entries:
        yield from _search(owner, entry.value, (*path, str(entry.key.value)))


def _template(owner: TemplateOwner, path: Path, spec: Mapping) -> Template:
    for rule in owner.known.roles if owner.known else ():
        steps = rule.template.split(".") if rule.template else []
        if len(steps) != len(path) or any(
            s not in ("*", p) for s, p in zip(steps, path, strict=True)
        ):
            continue
        star = steps.index("*") + 1 if "*" in steps else len(path) - 1
        item, matched = mapping_at(owner.data, path[:star]), rule.name
        if "*" in steps:
            step = path[star - 1]
            names = (item.get("name"), item.get("groupName")) if isinstance(step, int) else ()
            matched = next((str(n) for n in names if n is not None), str(step))
        return Template(owner=owner, path=path, spec=spec, rule=rule, matched=matched, item=item)
    ray = RAY_RULE if any(step in RAY_GROUPS for step in path) else None
    return Template(owner=owner, path=path, spec=spec, rule=ray, matched="worker", item=owner.data)


def mapping_at(data: Any, path: Path) -> dict[str, Any]:
    """The mapping at a path in plain data; empty if there is none."""
    for step in path:
        try:
            data = data[step]
        except (KeyError, IndexError, TypeError):
            return {}
    return data if isinstance(data, dict) else {}
