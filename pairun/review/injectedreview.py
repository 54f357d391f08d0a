"""Reviews an injected manifest: plans each of its Pods as the init container will."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from pairun.base.durations import parse_seconds
from pairun.base.foreignjson import parse_record
from pairun.base.grace import GRACE_VARIABLE
from pairun.errors import Place, Problem, Problems, Source
from pairun.inject.podspec import INIT
from pairun.inject.templates import Template, owners_in, templates_of
from pairun.inject.tree import Mapping as MappingPart
from pairun.inject.tree import mappings_in
from pairun.inject.treereading import read_tree
from pairun.job.checks.gracetime import PodGrace
from pairun.kube.gang import gang_sizes
from pairun.openpai.enginelayers import (
    BARRIER,
    COMMAND_FILE,
    RECORD,
    barrier_layer,
    command_layer,
    merged,
    of_gang,
)
from pairun.openpai.plainpod import read_plain_job, without_server_warnings
from pairun.playbook.effective import Layers
from pairun.review.jobreview import JobReview, Settings, review_loaded
from pairun.secrets.vault import Vault


def review_injected(
    source: Source, layers: Layers, user: str, settings: Settings, *, vault: Vault
) -> list[JobReview]:
    """Review every injected Pod template of a manifest.

    Args:
        source: the manifest.
        layers: the content roots, already read.
        user: the user who owns the Pods.
        settings: the cluster's settings.
        vault: collects every secret that is read.

    Raises:
        PairunError: the manifest cannot be read, or pairun's additions were changed.
    """
    templates = [
        template
        for document in read_tree(source).documents
        for owner in owners_in(document)
        for template in templates_of(owner)
    ]
    return [
        _review(source, template, env, layers, user, settings, vault)
        for template in templates
        for env in _environments(template)
    ]


def _environments(template: Template) -> Iterator[Mapping[str, str]]:
    """The variables of a template's init container; none if it is not injected."""
    for container in _mappings(template.spec.plain().get("initContainers")):
        if container.get("name") == INIT:
            variables = _mappings(container.get("env"))
            yield {str(v.get("name")): str(v["value"]) for v in variables if "value" in v}


def _mappings(value: object) -> list[dict[str, Any]]:
    """The mappings in a list of a manifest, whose items may have any type."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _review(
    source: Source,
    template: Template,
    env: Mapping[str, str],
    layers: Layers,
    user: str,
    settings: Settings,
    vault: Vault,
) -> JobReview:
    gang = of_gang(gang_sizes, env)
    config = Source(f"{source.file}: {template.label}", "job", env.get("RUNTIME_CONFIG", ""))
    sizes, role = gang or (None, None)
    job, problems = read_plain_job(config, user=user, gang=sizes)
    main = _main_container(template, env)
    words = [main.get(key) for key in ("command", "args")]
    argv = [str(word) for part in words for word in (part.plain() if part else None) or ()][2:]
    plain = settings._replace(
        plain=True,
        grace=_grace(template, main),
        engine=merged(barrier_layer({BARRIER: "pods"} if gang else {}), command_layer(env, argv)),
    )
    only = [role] if role else []
    review = review_loaded(config.file, job, problems, layers, only, plain, vault=vault)
    command = main.get("command")
    place = command.place if command else main.place
    kept = (_in_manifest(p, place) for p in without_server_warnings(list(review.problems)))
    return attrs.evolve(review, problems=Problems(kept))


def _main_container(template: Template, env: Mapping[str, str]) -> MappingPart:
    """The container whose command PID 1 starts."""
    containers = mappings_in(template.spec.get("containers"))
    name = (parse_record(env.get(RECORD, "")) or {}).get("container")
    named = (c for c in containers if (given := c.get("name")) and given.plain() == name)
    return next(named, containers[0] if containers else template.spec)


def _grace(template: Template, container: MappingPart) -> PodGrace | None:
    """PID 1's grace time; None if its variable is not in the manifest."""
    variables = _mappings(container.plain().get("env"))
    text = next((v.get("value") for v in variables if v.get("name") == GRACE_VARIABLE), None)
    seconds = parse_seconds(str(text)) if text else None
    given = template.spec.get("terminationGracePeriodSeconds")
    return None if seconds is None else PodGrace(seconds, given.place if given else None)


def _in_manifest(problem: Problem, command: Place) -> Problem:
    """Move a problem of the command to the command's place in the manifest."""
    if problem.place is None or problem.place.source.file != COMMAND_FILE:
        return problem
    return problem._replace(place=command)
