"""The command of a container that names none: the image's, or the one its controller runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from pairun.errors import PairunError, Problems, nearest
from pairun.inject.templates import Template
from pairun.inject.tree import Mapping
from pairun.inject.tree import Sequence as List


class ImageCommand(NamedTuple):
    """The command of an image.

    Attributes:
        entrypoint: its ENTRYPOINT.
        cmd: its CMD.
        pinned: the image's name with the digest that the registry returned, or None.
    """

    entrypoint: Sequence[str]
    cmd: Sequence[str]
    pinned: str | None


AskImage = Callable[[str, Sequence[str]], ImageCommand]
"""Takes an image and the architectures of its nodes (empty: any)."""

_MPI = {"v2beta1": ["/usr/sbin/sshd", "-De"], "v1": ["sleep", "365d"]}
"""The commands that MPIJob's controllers run in a worker without one, by version of the kind."""

_FIELDS = ("command", "args")
"""The fields that set a container's command; no other field of Kubernetes has a similar name."""


class Command(NamedTuple):
    """The command of a main container.

    Attributes:
        written: the whole command, to be written into the manifest; None if the manifest has it.
        argv: all words that the manifest gives, for plans and reviews.
        pinned: the image's name with its digest, or None.
    """

    written: Sequence[str] | None
    argv: Sequence[str]
    pinned: str | None = None


def command_of(
    template: Template,
    container: Mapping,
    entrypoint: Sequence[str] | None,
    ask: AskImage | None,
    problems: Problems,
) -> Command | None:
    """Find the command of a container.

    Args:
        template: the Pod template.
        container: its main container.
        entrypoint: the images' command, given by the user.
        ask: asks the registry; None if that is not allowed.
        problems: takes an error if the command is unknown.

    Returns:
        The command; None if there is an error.
    """
    errors = len(problems.errors)
    command, args = (_words(template, container, key, problems) for key in _FIELDS)
    if len(problems.errors) > errors:
        return None
    if command:
        return Command(None, [*command, *args])
    for entry in container.entries:
        key = str(entry.key.value)
        if key not in _FIELDS and (field := nearest(key, _FIELDS)):
            problems.error(
                "PR821",
                f"{template.label} has no command, but the unknown field '{key}'",
                entry.key.place,
                f"did you mean '{field}'?",
            )
            return None
    if not args and (written := _of_controller(template)):
        problems.warning(
            "PR826",
            f"{template.label}: ranks start under '{' '.join(written)}', which the controller runs "
            "here: PID 1 keeps its log and diagnoses it, and not the ranks",
            container.place,
        )
        return Command(written, written)
    if entrypoint is not None:
        return Command(_escaped(entrypoint), [*entrypoint, *args])
    image = container.get("image")
    if ask is None or image is None:
        problems.error(
            "PR821",
            f"{template.label} has no command, and what its image runs is unknown",
            container.place,
            "give it with --entrypoint COMMAND",
        )
        return None
    try:
        asked = ask(str(image.plain()), architectures_of(template.spec))
    except PairunError as e:
        for problem in e.problems:
            problems.error(problem.id, problem.message, image.place, problem.hint)
        return None
    own = [*asked.entrypoint, *([] if args else asked.cmd)]
    if not own:
        problems.error(
            "PR821",
            f"{template.label} has no command, and its image has no ENTRYPOINT"
            + ("" if args else " and no CMD"),
            container.place,
            "give it with --entrypoint COMMAND",
        )
        return None
    return Command(_escaped(own), [*own, *args], asked.pinned)


def _of_controller(template: Template) -> Sequence[str] | None:
    if template.owner.kind != "MPIJob" or template.role != "worker":
        return None
    return _MPI.get(str(template.owner.data.get("apiVersion")).rpartition("/")[2])


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
    """The architectures that ``nodeSelector`` or a required node affinity names; empty means any.

    Source: Kubernetes documentation, "Assigning Pods to Nodes": one of the terms must match, with
    all of its expressions.

    Args:
        spec: the Pod's spec.
    """
    pod = spec.plain()
    selector = pod.get("nodeSelector")
    for label in _LABELS:
        if isinstance(selector, dict) and label in selector:
            return (str(selector[label]),)
    affinity: Any = pod
    for key in (
        "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution",
        "nodeSelectorTerms",
    ):  # fmt: skip
        affinity = affinity.get(key) if isinstance(affinity, dict) else None
    named = [_of_term(term) for term in affinity] if isinstance(affinity, list) else []
    if not named or not all(named):
        return ()
    return tuple(dict.fromkeys(name for names in named for name in names))


def _of_term(term: Any) -> list[str]:
    """The architectures of one term; empty if it names none."""
    expressions = term.get("matchExpressions") if isinstance(term, dict) else None
    for expression in expressions if isinstance(expressions, list) else ():
        if isinstance(expression, dict) and expression.get("key") in _LABELS:
            values = expression.get("values")
            if expression.get("operator") == "In" and isinstance(values, list):
                return [str(value) for value in values]
    return []
