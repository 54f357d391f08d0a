"""Which plugins a role uses, in which order, with which parameters."""

from __future__ import annotations

import functools
from collections.abc import Iterator

from pairun.errors import Problem, Problems
from pairun.job.model import Job, Prerequisite, Role
from pairun.job.parameters import Scope, render_parameters, role_scope
from pairun.plan import FailurePolicy
from pairun.playbook.document.reading import Node, node_of
from pairun.playbook.inputs import PluginUse

# Keys of a prerequisite that are not parameters of its plugin.
_LIFTED = frozenset({"type", "plugin", "failurePolicy"})


def collect(job: Job, role: Role) -> tuple[list[PluginUse], Problems]:
    """The plugins of a role with rendered parameters.

    First the role's prerequisites in order, each once and after those it requires, then the items
    of the job's plugin list that apply to the role. The single ``script``, ``data`` and ``output``
    of a role are only names for templates: OpenPAI never executes them.

    A tag that cannot be resolved is an error. If the failure policy is ``ignore``, it is a
    warning, and the plugin is skipped.
    """
    uses: list[PluginUse] = []
    problems = Problems()
    for entry in prerequisites_of(job, role):
        if entry.plugin is None:
            continue
        parameters = {k: v for k, v in entry.node.items() if k not in _LIFTED}
        node = Node(parameters, entry.node.place, entry.node.key)
        scope = role_scope(job, role, functools.partial(_inheritance, job, entry))
        rendered = _render(node, scope, entry.failure_policy, problems)
        if rendered is not None:
            uses.append(_use(entry.plugin, entry.name, rendered, entry.failure_policy, entry.node))
    for item in job.plugins:
        if not item.is_for(role):
            continue
        node = item.parameters or node_of({}, item.node.place)
        rendered = _render(node, role_scope(job, role), item.failure_policy, problems)
        if rendered is not None:
            uses.append(_use(item.plugin, item.plugin, rendered, item.failure_policy, item.node))
    return uses, problems


def _use(
    plugin: str, base_id: str, parameters: Node, policy: FailurePolicy, node: Node
) -> PluginUse:
    return PluginUse(
        plugin=plugin,
        base_id=base_id,
        parameters=parameters,
        failure_policy=policy,
        place=node.place,
    )


def _render(node: Node, scope: Scope, policy: FailurePolicy, problems: Problems) -> Node | None:
    errors = Problems()
    rendered = render_parameters(node, scope, errors)
    if policy == "fail":
        problems.extend(errors)
        return rendered
    problems.extend(_left_out(p) for p in errors)
    return None if errors else rendered


def _left_out(problem: Problem) -> Problem:
    message = f"{problem.message}, so pairun ignores the plugin"
    return problem._replace(severity="warning", message=message)


def prerequisites_of(job: Job, role: Role) -> list[Prerequisite]:
    """The prerequisites that a role lists, each once and after those it requires."""
    done: list[Prerequisite] = []
    begun: set[str] = set()
    # Depth first without recursion; cycles are already rejected.
    stack: list[tuple[Prerequisite | None, Iterator[str]]] = [(None, iter(role.prerequisites))]
    while stack:
        entry, rest = stack[-1]
        required = next(rest, None)
        if required is None:
            stack.pop()
            done += [entry] if entry else []
        elif required not in begun and (prerequisite := job.prerequisite(required)) is not None:
            begun.add(required)
            stack.append((prerequisite, iter(prerequisite.requires)))
    return done


def _inheritance(job: Job, entry: Prerequisite) -> Iterator[Node]:
    """A prerequisite, then those it requires, depth first: the order to search for properties."""
    seen: set[str] = set()
    stack = [entry]
    while stack:
        current = stack.pop()
        if current.name not in seen:
            seen.add(current.name)
            yield current.node
            required = (job.prerequisite(name) for name in reversed(current.requires))
            stack += [r for r in required if r]
