"""Reviews the valid parts of an invalid job: its plugins and its overrides.

So one run shows all problems; the user need not fix the job first to see those of its overrides.
"""

from __future__ import annotations

from collections.abc import Sequence

from pairun.base.cpulimit import CpuBudget
from pairun.errors import PairunError, Place, Problems
from pairun.job.entries import read_plugins, read_prerequisites
from pairun.job.hiding import hide_secrets, leaves
from pairun.job.model import fc_name
from pairun.job.stored import framework_in, is_mixture, is_yarn
from pairun.playbook.document.reading import Node, decode, entries, node_of, read_text
from pairun.playbook.document.scalars import Dialect
from pairun.playbook.drafts import PluginUse
from pairun.playbook.effective import Layers
from pairun.playbook.expressions.filecheck import check_expressions
from pairun.playbook.expressions.template import MAX_SECONDS
from pairun.playbook.expressions.views import work
from pairun.playbook.podfragment import (
    check_roles,
    check_sound_part,
    places_of,
    pod_settings,
)
from pairun.playbook.podschema import pod_mistakes
from pairun.playbook.taskchecks import check_task
from pairun.review.jobreview import Settings


def invalid_job_problems(document: Node, layers: Layers, settings: Settings) -> Problems:
    """The problems of the plugins and overrides of a job whose own problems are known.

    Args:
        document: the job, which is valid YAML.
        layers: the content roots, already read.
        settings: the cluster's settings.
    """
    uses = plugin_uses(document)
    overrides = document.at(("extras", "pairun"))
    everything, certain = Problems(), Problems()
    with work.charged_to(CpuBudget(MAX_SECONDS)):
        effective = layers.effective(
            uses, init_plugins=settings.init_plugins, job=overrides, problems=everything
        )
        if overrides is not None:
            check_expressions(overrides, layers.names(), certain)
    if overrides is not None:
        for phase, draft in effective.drafts.items():
            for task in draft.tasks():
                check_task(task, phase, layers.content, everything)
        _check_pod(document, overrides, layers, certain)
    places = _certain_places(uses, overrides)
    # The ids of plugins depend on the role.
    certain.extend(p for p in everything if p.place in places and p.id != "PR206")
    return certain


def _check_pod(document: Node, overrides: Node, layers: Layers, problems: Problems) -> None:
    """Check the Pod settings of every role."""
    own = overrides.get("pod")
    if own is None:
        return
    if any(pod_mistakes(own)):
        check_sound_part(layers.policy, own, problems)
        return
    names = role_names(document)
    check_roles(own, [name for raw in names for name in (raw, fc_name(raw))], problems)
    for name in names:
        pod_settings(layers.policy, own, None, name, [fc_name(name)], problems)


def _certain_places(uses: Sequence[PluginUse], overrides: Node | None) -> set[Place]:
    """The places whose problems do not depend on the rest of the job."""
    places = set(places_of(overrides)) if overrides is not None else set()
    for use in uses:
        places.add(use.place)
        values = (leaf.value for leaf in leaves(use.parameters))
        if not any(isinstance(value, str) and "<%" in value for value in values):
            places |= set(places_of(use.parameters))
    return places


def job_document(data: bytes, path: str, dialect: Dialect) -> Node | None:
    """The document of a job file of protocol v2 with an invalid job; None if it is not one.

    Args:
        data: the file's bytes.
        path: its name.
        dialect: how the cluster's REST server reads it.
    """
    try:
        if framework_in(data, path) is not None:
            return None
        document = read_text(decode(data, path, "job"), dialect)
    except PairunError:
        return None
    if not isinstance(document.value, dict) or is_mixture(document) or is_yarn(document):
        return None
    hide_secrets(document)
    return document


def role_names(document: Node) -> list[str]:
    """The raw names of a job's roles."""
    return [name for name, _ in entries(document, "taskRoles")]


def plugin_uses(document: Node) -> list[PluginUse]:
    """Every plugin that any role may use, with parameters as written."""
    reported = Problems()  # the check of the job reports them
    uses = [
        PluginUse(
            plugin=entry.plugin,
            base_id=entry.name,
            parameters=_without(entry.node, "type", "plugin", "failurePolicy"),
            failure_policy=entry.failure_policy,
            place=entry.node.place,
        )
        for entry in read_prerequisites(document, reported)
        if entry.plugin is not None
    ]
    names = frozenset(n for raw in role_names(document) for n in (raw, fc_name(raw)))
    uses += [
        PluginUse(
            plugin=item.plugin,
            base_id=item.plugin,
            parameters=item.parameters or node_of({}, item.node.place),
            failure_policy=item.failure_policy,
            place=item.node.place,
        )
        for item in read_plugins(document, names, reported)
    ]
    return uses


def _without(node: Node, *keys: str) -> Node:
    return Node({k: v for k, v in node.items() if k not in keys}, node.place, node.key)
