"""Plans a role of a job: collects its plugins, and makes the two plans that its containers run."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from pairun.errors import Problems
from pairun.job.jobview import image_login, job_context
from pairun.job.model import Job, Prerequisite, Role
from pairun.job.parameters import TagScope, render_parameters, role_scope
from pairun.job.templates import expression_parameters, expression_secrets
from pairun.module import Phase, Secret
from pairun.plan import FailurePolicy, Plan
from pairun.playbook.compiling import compile_phase
from pairun.playbook.document.reading import Node, node_of
from pairun.playbook.document.scalars import js_text
from pairun.playbook.drafts import PluginUse
from pairun.playbook.effective import Effective, Layers
from pairun.playbook.expressions.views import Partial, Unknown, work
from pairun.playbook.initplugins import InitPlugins
from pairun.playbook.values import CompileInputs
from pairun.secrets.vault import Vault

_FACTS = frozenset({"environment", "summary", "own", "roles"})
CLUSTER_UNKNOWN = Unknown("the addresses of the peers", _FACTS)
POD_UNKNOWN = Unknown("the address of the Pod", _FACTS)
RUNTIME_ENV_UNKNOWN = Unknown("the environment of the user's container", optional=True)
USER_EXTENSION_UNKNOWN = Unknown(
    "the user's extension, which is mounted into the Pod", optional=True
)


class RolePlan(NamedTuple):
    """The plans of one role's containers.

    Attributes:
        uses: its plugins, in order of collection.
        effective: the playbooks after every layer, with their history.
    """

    job: Job
    role: Role
    uses: tuple[PluginUse, ...]
    effective: Effective
    plans: Mapping[Phase, Plan]


def plan_role(
    layers: Layers,
    job: Job,
    role: Role,
    *,
    env: Mapping[Phase, Any],
    cluster: Mapping[str, Any] | Unknown = CLUSTER_UNKNOWN,
    init_plugins: InitPlugins | None = None,
    engine: Node | None = None,
    user_extension: Any = None,
    written: Mapping[str, str | Secret] | None = None,
    command: str | None = None,
    rewrite: tuple[str, str] | None = None,
    vault: Vault,
    problems: Problems,
) -> RolePlan:
    """Make the plans of one role.

    Args:
        layers: the content roots, already read.
        env: environment of each phase: a mapping, or what is unknown about it.
        cluster: the value of that name in expressions, once peers and ports are known.
        init_plugins: the cluster's list that replaces the init playbook's tasks.
        engine: operations of the engine.
        user_extension: the value of that name in plugin specs.
        written: the scripts that programs of plugin folders wrote; None before they run.
        command: the user's command if the platform has rendered it.
        rewrite: the shared volume's path, and its replacement.
        vault: masks; it knows the job's secrets (`secrets_of`).
    """
    uses, plugin_problems = collect(job, role)
    problems.extend(plugin_problems)
    facts = CompileInputs(
        job=job_context(job, role, gang=_gang(job, env["init"]), command=command),
        parameters=expression_parameters(job),
        cluster=cluster,
        env=env,
        secrets=expression_secrets(job),
        vault=vault,
        rewrite=rewrite,
    )
    phases: tuple[Phase, ...] = ("init", "runtime")
    with work.charged_to(job.budget):
        effective = layers.effective(
            uses,
            init_plugins=init_plugins,
            engine=engine,
            job=job.plugin_overrides,
            user_extension=user_extension,
            written=written,
            problems=problems,
        )
        plans = {p: compile_phase(effective, p, layers.content, facts, problems) for p in phases}
    return RolePlan(job=job, role=role, uses=tuple(uses), effective=effective, plans=plans)


def _gang(job: Job, env: Any) -> bool:
    """Whether all tasks start together; the platform's variable decides if it is known."""
    known = env.known if isinstance(env, Partial) else env
    given = known.get("GANG_ALLOCATION") if isinstance(known, Mapping) else None
    return job.gang if given is None else bool(given == "true")


def secrets_of(job: Job) -> list[str]:
    """Every text of a job that output must not show, including secrets in plain text."""
    secrets = list(job.node.place.source.concealed)

    def collect_from(value: object) -> None:
        if isinstance(value, dict):
            for v in value.values():
                collect_from(v)
        elif isinstance(value, list):
            for v in value:
                collect_from(v)
        elif isinstance(value, Secret):
            secrets.append(value.reveal())
        elif isinstance(value, str | int | float) and not isinstance(value, bool):
            secrets.append(js_text(value))

    if job.secrets is not None:
        collect_from(job.secrets.plain())
    for image in {id(role.image): role.image for role in job.roles}.values():
        auth = image_login(job, image) or {}
        if isinstance(password := auth.get("password"), Secret):
            secrets.append(password.reveal())
    return secrets


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
            policy, place = entry.failure_policy, entry.node.place
            uses.append(PluginUse(entry.plugin, entry.name, rendered, policy, place))
    for item in job.plugins:
        if not item.is_for(role):
            continue
        node = item.parameters or node_of({}, item.node.place)
        rendered = _render(node, role_scope(job, role), item.failure_policy, problems)
        if rendered is not None:
            policy, place = item.failure_policy, item.node.place
            uses.append(PluginUse(item.plugin, item.plugin, rendered, policy, place))
    return uses, problems


def _render(node: Node, scope: TagScope, policy: FailurePolicy, problems: Problems) -> Node | None:
    errors = Problems()
    rendered = render_parameters(node, scope, errors)
    if policy == "fail":
        problems.extend(errors)
        return rendered
    for p in errors:
        problems.warning(p.id, f"{p.message}, so pairun ignores the plugin", p.place, p.hint)
    return None if errors else rendered


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
