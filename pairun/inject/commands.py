"""Finds the container of a Pod that runs the user's command, and the command if it names none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pairun.errors import PairunError, Problems, nearest
from pairun.inject.options import InjectOptions
from pairun.inject.templates import Template, mapping_at
from pairun.inject.tree import Mapping, mappings_in, name_of
from pairun.inject.tree import Sequence as List

_DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"


def main_container(
    template: Template, options: InjectOptions, problems: Problems
) -> Mapping | None:
    """Find the main container.

    It is the one that the user names, else the one that the annotation or the kind's controller
    names, else the one with the role's name, else the first with a device, else the first.

    Returns:
        The container; None if there is an error.
    """
    containers = mappings_in(template.spec.get("containers"))
    by_name = {name_of(c): c for c in containers}
    asked = options.of(options.container, "--container", *template.names)
    if asked in by_name:
        return by_name[asked]
    # A name without a template's is for the Pods with several containers.
    is_wrong = asked is not None and (len(containers) > 1 or "" not in options.container)
    if is_wrong or not containers:
        what = f"container '{asked}'" if is_wrong else "container"
        hint = f"its containers: {', '.join(by_name)}" if containers else None
        problems.error("PR823", f"{template.label} has no {what}", template.spec.place, hint)
        return None
    known = template.owner.known
    annotated = mapping_at(template.metadata, ("annotations",)).get(_DEFAULT_CONTAINER)
    for name in (annotated, known.container if known else None):
        if name in by_name:
            return by_name[name]
    if known and known.first_is_main:
        return containers[0]
    named = next((by_name[n] for n in template.names[:2] if n in by_name), None)
    return named or next(filter(_has_device, containers), containers[0])


def _has_device(container: Mapping) -> bool:
    resources = mapping_at(container.plain(), ("resources",))
    return any(
        "/" in str(n) for key in ("limits", "requests") for n in mapping_at(resources, (key,))
    )


_FIELDS = ("command", "args")
"""The fields that set a container's command; no other field of Kubernetes has a similar name."""


class _Command(NamedTuple):
    """The command of a main container.

    Attributes:
        written: the whole command, to be written into the manifest; None if the manifest has it.
        pinned: the image's name with its digest, or None.
    """

    written: Sequence[str] | None
    pinned: str | None = None


def command_of(
    template: Template, container: Mapping, options: InjectOptions, problems: Problems
) -> _Command | None:
    """Find the command of a container.

    Returns:
        The command; None if there is an error.
    """
    errors = len(problems.errors)
    command, args = (_words(template, container, key, problems) for key in _FIELDS)
    if len(problems.errors) > errors:
        return None
    if command:
        return _Command(None)
    for entry in container.entries:
        key = str(entry.key.value)
        if key not in _FIELDS and (field := nearest(key, _FIELDS)):
            message = f"{template.label} has no command, but the unknown field '{key}'"
            problems.error("PR821", message, entry.key.place, f"did you mean '{field}'?")
            return None
    version = str(template.owner.data.get("apiVersion")).rpartition("/")[2]
    written = template.rule.commands.get(version) if template.rule else None
    if not args and written:
        message = (
            f"{template.label}: ranks start under '{' '.join(written)}', which the controller runs "
            "here: PID 1 keeps its log and diagnoses it, and not the ranks"
        )
        problems.warning("PR826", message, container.place)
        return _Command(written)
    names = (name_of(container), *template.names)
    entrypoint = options.of(options.entrypoint, "--entrypoint", *names)
    if entrypoint is not None:
        return _Command(_escaped(entrypoint))
    image = container.get("image")
    unknown = "what its image runs is unknown"
    if options.ask is not None and image is not None:
        try:
            asked = options.ask(str(image.plain()), architectures_of(template.spec))
        except PairunError as e:
            for problem in e.problems:
                problems.error(problem.id, problem.message, image.place, problem.hint)
            return None
        if own := [*asked.entrypoint, *([] if args else asked.cmd)]:
            return _Command(_escaped(own), asked.pinned)
        unknown = "its image has no ENTRYPOINT" + ("" if args else " and no CMD")
    message = f"{template.label} has no command, and {unknown}"
    problems.error("PR821", message, container.place, "give it with --entrypoint COMMAND")
    return None


def _words(template: Template, container: Mapping, key: str, problems: Problems) -> list[str]:
    """The words of one field; an item that is not text is an error at its place."""
    given = container.get(key)
    if given is None or given.plain() is None:
        return []
    message = f"{template.label}: {key} must be a list of texts"
    if not isinstance(given, List):
        problems.error("PR821", message, given.place, f"as in {key}: [python, train.py]")
        return []
    for item in given.items:
        if not isinstance(item.plain(), str):
            problems.error("PR821", message, item.place, "write texts in quotes")
    return [str(word) for word in given.plain()]


def _escaped(words: Sequence[str]) -> list[str]:
    """Escape ``$(NAME)`` so that Kubernetes does not replace it: an image's words run unchanged."""
    return [w.replace("$(", "$$(") for w in words]


_LABELS = ("kubernetes.io/arch", "beta.kubernetes.io/arch")


def architectures_of(spec: Mapping) -> tuple[str, ...]:
    """The architecture that the Pod's ``nodeSelector`` names; empty means any."""
    selector = mapping_at(spec.plain(), ("nodeSelector",))
    return tuple(str(selector[label]) for label in _LABELS if label in selector)[:1]
