"""The facts that a Pod's status states about its containers and conditions, each with its line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pairun.diagnose.facts.fact import Fact
from pairun.diagnose.facts.pods import fact_of_code, fact_of_message, fact_of_reason, outlived
from pairun.incident.clusterobjects import ClusterObject, mapping, mappings
from pairun.incident.times import moment_in


def states_of(container: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The state of a container, and how it ended before if it has restarted since."""
    state = mapping(container.get("state"))
    yield state
    if not state.get("terminated"):
        yield mapping(container.get("lastState"))


def facts_of_status(
    each: ClusterObject, status: Mapping[str, Any], containers: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[Fact, int]]:
    """The facts that a Pod's status states by words, each with its line.

    Args:
        each: the object.
        status: of the Pod.
        containers: the statuses of its containers.
    """
    if status.get("phase") == "Succeeded":
        return
    yield from _facts_in(each, status, "message", "reason")
    for condition in mappings(status.get("conditions")):
        kind, holds = condition.get("type"), condition.get("status")
        if (kind, holds) in (("DisruptionTarget", "True"), ("PodScheduled", "False")):
            yield from _facts_in(each, condition, "message", "reason")
    for container in containers:
        for state in states_of(container):
            for part in (mapping(state.get("waiting")), mapping(state.get("terminated"))):
                for fact, line in _facts_in(each, part, "reason"):
                    yield _weighed(fact, container), line


def _facts_in(
    each: ClusterObject, part: Mapping[str, Any], *keys: str
) -> Iterator[tuple[Fact, int]]:
    for key in keys:
        text = str(part.get(key) or "")
        fact = fact_of_message(text) if key == "message" else fact_of_reason(text)
        if fact is not None:
            yield fact, each.line_of(key, text)


def facts_of_codes(
    each: ClusterObject, containers: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[Fact, int]]:
    """The facts that the exit codes of containers alone state, each with its line.

    Args:
        each: the object.
        containers: their statuses.
    """
    for container in containers:
        for state in states_of(container):
            code = mapping(state.get("terminated")).get("exitCode")
            if isinstance(code, int) and (fact := fact_of_code(code)) is not None:
                yield _weighed(fact, container), each.line_of("exitCode", code)


def _weighed(fact: Fact, container: Mapping[str, Any]) -> Fact:
    """A fact about a container, which counts little if the container runs again and is ready."""
    running = mapping(container.get("state")).get("running")
    if not isinstance(running, dict) or container.get("ready") is not True:
        return fact
    since = moment_in(str(running.get("startedAt") or ""))
    restarts = container.get("restartCount")
    count = restarts if isinstance(restarts, int) else 1
    return outlived(fact, since.clock() if since is not None else "", count)
