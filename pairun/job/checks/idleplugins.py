"""Finds plugins of a job that add no tasks, because their parameters enable none."""

from __future__ import annotations

from collections.abc import Iterator

from pairun.errors import Problem
from pairun.job.planning import RolePlan
from pairun.playbook.content import Content
from pairun.playbook.document.nodes import elements, text
from pairun.playbook.document.reading import Node
from pairun.playbook.specs import PHASES

_MAX_HINT = 100


def idle_plugin_warnings(plan: RolePlan, content: Content) -> Iterator[Problem]:
    """A warning for each plugin of a role that does nothing with its parameters.

    Args:
        plan: the role's plan.
        content: the content roots, which contain the plugin specs.
    """
    drafts = plan.effective.drafts.values()
    busy = {str(task.used_at) for draft in drafts for task in draft.tasks()}
    wrong = {base_id for draft in drafts for base_id in draft.left_out}
    for use in plan.uses:
        spec = content.specs.get(use.plugin)
        denied = not plan.effective.policy.may_use(use.plugin).allowed
        if spec is None or str(use.place) in busy or use.base_id in wrong or denied:
            continue
        document = content.document(*spec)
        if _brings_tasks(document) and not _has_unknown(use.parameters, document):
            message = f"the plugin '{use.plugin}' does nothing with these parameters"
            yield Problem("PR929", message, use.place, _hint(use.plugin, document), "warning")


def _brings_tasks(spec: Node) -> bool:
    return any(elements(spec, phase) for phase in PHASES)


def _has_unknown(parameters: Node, spec: Node) -> bool:
    """Whether the spec does not list a parameter, which is then the likely mistake."""
    properties = spec.at(("parameters", "properties"))
    return any(properties is None or properties.get(name) is None for name, _ in parameters.items())


def _hint(plugin: str, spec: Node) -> str:
    """The condition of its tasks, if it is short enough to read."""
    tasks = [task for phase in PHASES for task in elements(spec, phase)]
    conditions = dict.fromkeys(filter(None, (text(task, "when") for task in tasks)))
    words = f"it runs tasks only if {' or '.join(conditions)}"
    if not conditions or len(words) > _MAX_HINT:
        return f"see `pairun doc {plugin}` for its parameters"
    return f"{words}; see `pairun doc {plugin}`"
