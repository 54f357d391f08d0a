"""Plans a role of a job: makes the two plans that its containers run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from pairun.errors import Problems
from pairun.job.jobview import image_login, job_context
from pairun.job.model import Job, Role
from pairun.job.plugins import collect
from pairun.job.templates import expression_parameters, expression_secrets
from pairun.module import Phase, Secret
from pairun.plan import Plan
from pairun.playbook.compiling import compile_phase
from pairun.playbook.document.reading import Node
from pairun.playbook.document.scalars import js_text
from pairun.playbook.effective import Effective, Layers
from pairun.playbook.expressions.views import Partial, Unknown, work
from pairun.playbook.initplugins import InitPlugins
from pairun.playbook.inputs import PluginUse
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
        job: the job.
        role: the role.
        uses: its plugins, in order of collection.
        effective: the playbooks after every layer, with their history.
        plans: the plan of each phase.
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
        job: the job.
        role: the role.
        env: environment of each phase: a mapping, or what is unknown about it.
        cluster: the value of that name in expressions, once peers and ports are known.
        init_plugins: the cluster's list that replaces the init playbook's tasks.
        engine: operations of the engine.
        user_extension: the value of that name in plugin specs.
        written: the scripts that programs of plugin folders wrote; None before they run.
        command: the user's command if the platform has rendered it.
        rewrite: the shared volume's path, and its replacement.
        vault: masks; it knows the job's secrets (`secrets_of`).
        problems: takes every error and warning.
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
