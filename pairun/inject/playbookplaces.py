"""Maps places in the ``--playbook`` file: a review sees it inside the Pod's ``RUNTIME_CONFIG``."""

from __future__ import annotations

from collections.abc import Iterator

from pairun.errors import PairunError, Place, Problem
from pairun.playbook.document.reading import Node, read_text


def in_playbook(problem: Problem, playbook: Node) -> Problem:
    """A problem with its place in the playbook; unchanged if it is about something else.

    Args:
        problem: from a review.
        playbook: the file's root node.
    """
    place = problem.place
    if place is None or place.source.file == playbook.place.source.file:
        return problem
    try:
        config = read_text(place.source)
    except PairunError:
        return problem
    extras = config.get("extras") if isinstance(config.value, dict) else None
    inner = extras.get("pairun") if extras is not None else None
    pairs = (
        {}
        if inner is None
        else {(made.line, made.column): own for made, own in _pairs(inner, playbook)}
    )
    own = pairs.get((place.line, place.column))
    return problem if own is None else problem._replace(place=own)


def _pairs(made: Node, own: Node) -> Iterator[tuple[Place, Place]]:
    """The places of the same values and keys in two texts."""
    yield made.place, own.place
    if made.key is not None and own.key is not None:
        yield made.key, own.key
    if isinstance(made.value, dict) and isinstance(own.value, dict):
        for key in made.value.keys() & own.value.keys():
            yield from _pairs(made.value[key], own.value[key])
    elif isinstance(made.value, list) and isinstance(own.value, list):
        # A hold is a task after those of the playbook.
        for child, other in zip(made.value, own.value, strict=False):
            yield from _pairs(child, other)
