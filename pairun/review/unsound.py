"""Reviews the valid parts of an invalid job: its plugins and its overrides.

So one run shows all problems; the user need not fix the job first to see those of its overrides.
"""

from __future__ import annotations

from collections.abc import Sequence

from pairun.base.cpulimit import CpuBudget
from pairun.errors import Place, Problems
from pairun.job.model import fc_name
from pairun.job.unsound import plugin_uses, role_names, texts
from pairun.playbook.document.reading import Node
from pairun.playbook.effective import Layers
from pairun.playbook.expressions.filecheck import check_expressions
from pairun.playbook.expressions.template import MAX_SECONDS
from pairun.playbook.expressions.views import work
from pairun.playbook.inputs import PluginUse
from pairun.playbook.podfragment import check_roles, places_of, pod_settings
from pairun.playbook.podschema import pod_mistakes
from pairun.playbook.taskchecks import check_task
from pairun.review.settings import Settings


def unsound_problems(document: Node, layers: Layers, settings: Settings) -> Problems:
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
            check_expressions(overrides, certain)
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
    if own is None or any(pod_mistakes(own)):
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
        if not any("<%" in text for text in texts(use.parameters)):
            places |= set(places_of(use.parameters))
    return places
