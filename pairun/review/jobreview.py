"""Reviews a job: makes its plans, and a verdict for every task.

The review reads nothing from this machine: it assumes an empty Pod.
"""

from __future__ import annotations

import itertools
import os
from collections import ChainMap
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import attrs

from pairun.base.paths import DEFAULT_CONFIG_DIR, DEFAULT_PAI_DIR
from pairun.errors import PairunError, Problem, Problems, did_you_mean
from pairun.host.worlds import ReviewContext
from pairun.job.checks.destinations import destination_warnings
from pairun.job.checks.gracetime import PodGrace, grace_warnings, torchrun_warnings
from pairun.job.checks.surprises import job_warnings
from pairun.job.hiding import hide_lines
from pairun.job.jobfile import read_input
from pairun.job.jsyaml import dialect_named
from pairun.job.model import Job, Role
from pairun.job.planning import (
    CLUSTER_UNKNOWN,
    POD_UNKNOWN,
    RUNTIME_ENV_UNKNOWN,
    USER_EXTENSION_UNKNOWN,
    RolePlan,
    plan_role,
    secrets_of,
)
from pairun.job.podresources import GPU_RESOURCE, asked
from pairun.job.stored import load_input
from pairun.module import Phase
from pairun.openpai.enginelayers import engine_layer, merged
from pairun.openpai.platform import framework_environment, instance_environment
from pairun.plan import USER_COMMAND
from pairun.playbook.content import Content
from pairun.playbook.document.reading import Node, decode, load_bytes
from pairun.playbook.effective import Layers
from pairun.playbook.expressions.views import Partial
from pairun.playbook.initplugins import InitPlugins
from pairun.playbook.podfragment import PodSettings, check_roles, check_sound_part, pod_settings
from pairun.playbook.podschema import pod_mistakes
from pairun.playbook.specs import PHASES
from pairun.review.taskreview import Reviewed, review_phase
from pairun.secrets.vault import Vault


class Settings(NamedTuple):
    """A review's inputs besides content roots and job.

    Attributes:
        init_plugins: the cluster's init plugins, which replace the init playbook's tasks; or None.
        plain: whether the job is a plain Pod.
        engine: what this Pod's engine changes, in addition to every plain Pod's changes; or None.
        grace: the Pod's own grace time, which replaces the playbook's; None if unknown.
        phases: the phases to show.
        warnings: warnings about the settings themselves.
        pod: Pod settings from a person's options; or None.
        gpu_resource: the cluster's resource name for GPUs.
    """

    init_plugins: InitPlugins | None = None
    plain: bool = False
    engine: Node | None = None
    grace: PodGrace | None = None
    phases: tuple[Phase, ...] = PHASES
    warnings: tuple[Problem, ...] = ()
    pod: Node | None = None
    gpu_resource: str = GPU_RESOURCE


NO_SETTINGS = Settings()


def read_settings(path: str | None) -> Settings:
    """Read the cluster's init plugins: from a file, else from where a Pod would read them.

    Raises:
        PairunError: they cannot be read, or are not valid.
    """
    if path is None and not _may_be_set(os.environ):
        return NO_SETTINGS
    from pairun.openpai.podconfig import PodConfig

    problems = Problems()
    config = PodConfig(env=os.environ, pai_dir=DEFAULT_PAI_DIR, problems=problems)
    source = config.init() if path is None else decode(load_bytes(path), path, "cluster")
    if source is None:
        return NO_SETTINGS
    from pairun.openpai.initconfig import read_init_config

    listed = read_init_config(source, config.init_dir(), problems)
    problems.raise_errors()
    return Settings(init_plugins=listed, warnings=tuple(problems))


def _may_be_set(env: Mapping[str, str]) -> bool:
    """Whether `PodConfig` may find settings; elsewhere, nothing that reads them is imported."""
    folders = (DEFAULT_CONFIG_DIR, os.path.join(DEFAULT_PAI_DIR, "config"))
    return bool(env.get("INIT_CONFIG") or env.get("PAI_CONFIG_DIR")) or any(
        map(os.path.lexists, folders)
    )


@attrs.frozen(kw_only=True)
class JobReview:
    """The review of one job file.

    Attributes:
        path: the file.
        job: the job; None if it is not valid.
        plans: one plan per role.
        tasks: role to phase to reviewed tasks.
        problems: all problems.
        vault: masks the secrets that the process has read.
        settings: the cluster's settings, and the kind of the Pod.
        pods: role to the settings of its Pods, for the engines of clusters.
    """

    path: str
    job: Job | None
    plans: tuple[RolePlan, ...]
    tasks: Mapping[str, Mapping[Phase, list[Reviewed]]]
    problems: Problems
    vault: Vault
    settings: Settings = NO_SETTINGS
    pods: Mapping[str, PodSettings] = attrs.field(factory=dict)

    def all_tasks(self) -> Iterator[Reviewed]:
        """The tasks of all roles and phases."""
        for phases in self.tasks.values():
            yield from itertools.chain(*phases.values())

    @property
    def changes(self) -> bool:
        """Whether a task other than the user's command would or may change something."""
        return any(
            t.verdict.kind in ("will_change", "unknown") and t.module != USER_COMMAND
            for t in self.all_tasks()
        )


def loaded(path: str) -> bytes | PairunError:
    """The bytes of a job file; ``-`` is standard input; the error if it cannot be read."""
    try:
        return load_input(path)
    except PairunError as e:
        return e


def review_data(
    data: bytes | PairunError,
    path: str,
    layers: Layers,
    user: str,
    only: list[str],
    settings: Settings = NO_SETTINGS,
    *,
    vault: Vault,
) -> JobReview:
    """Review what `loaded` returned; the other arguments are those of `review_loaded`."""
    if isinstance(data, PairunError):
        problems = Problems(data.problems)
        return review_loaded(path, None, problems, layers, only, settings, vault=vault)
    dialect = dialect_named(layers.policy.job_yaml)
    job, problems = read_input(data, path, user=user, dialect=dialect)
    if job is None:
        # imported here, because most jobs are valid
        from pairun.review.invalidjob import invalid_job_problems, job_document

        if (document := job_document(data, path, dialect)) is not None:
            problems.extend(invalid_job_problems(document, layers, settings))
    return review_loaded(path, job, problems, layers, only, settings, vault=vault)


def review_loaded(
    path: str,
    job: Job | None,
    problems: Problems,
    layers: Layers,
    only: list[str],
    settings: Settings = NO_SETTINGS,
    *,
    vault: Vault,
) -> JobReview:
    """Review a job that is already read.

    Args:
        path: the path of its file.
        job: the job; None if it is not valid.
        problems: the problems so far; also collects those of the review.
        layers: the content roots, already read.
        only: the roles to review; all if empty.
        settings: the cluster's settings, and the kind of the Pod.
        vault: collects every secret that is read.
    """
    problems.extend(settings.warnings)
    plans: list[RolePlan] = []
    pods: dict[str, PodSettings] = {}
    tasks: dict[str, dict[Phase, list[Reviewed]]] = {}
    if job is not None:
        vault.add(secrets_of(job))
        problems.extend(job_warnings(job))
        pods = _pods(layers, job, settings, problems)
        of_job = {k: v for k, v in framework_environment(job).items() if v}
        for role in _chosen_roles(path, job, only, problems):
            try:
                plan = _plan_role(layers, job, role, of_job, settings, problems, vault)
                problems.extend(grace_warnings(plan, settings.grace))
                problems.extend(destination_warnings(plan, layers.content))
                tasks[role.name] = _verdicts(plan, layers.content, settings)
                plans.append(plan)
            except PairunError as e:
                problems.extend(e.problems)
        problems.extend(torchrun_warnings(plans, settings.grace))
    vault.add(_secrets_read(layers.content, job, problems, settings))
    if job is not None:
        hide_lines(job.node, vault)
    return JobReview(
        path=path, job=job, plans=tuple(plans), tasks=tasks, problems=problems, vault=vault,
        settings=settings, pods=pods,
    )  # fmt: skip


def review_pod(
    path: str | None, layers: Layers, user: str, settings: Settings, *, vault: Vault
) -> JobReview:
    """Review a plain Pod: its settings are a job of one role.

    Args:
        path: the file with its commands and plugins; None for only the init phase.
        layers: the content roots, already read.
        user: the user who owns the Pod.
        settings: the cluster's settings.
        vault: collects every secret that is read.

    Raises:
        PairunError: the file cannot be read.
    """
    # imported here, because most jobs are not plain Pods
    from pairun.openpai.plainpod import no_commands, read_plain_job, without_server_warnings

    source = no_commands() if path is None else decode(load_bytes(path), path, "job")
    job, problems = read_plain_job(source, user=user)
    plain = settings._replace(plain=True, phases=PHASES if path else ("init",))
    review = review_loaded(source.file, job, problems, layers, [], plain, vault=vault)
    return attrs.evolve(review, problems=Problems(without_server_warnings(list(review.problems))))


def _pods(
    layers: Layers, job: Job, settings: Settings, problems: Problems
) -> dict[str, PodSettings]:
    """The settings of the Pods of each role."""
    own = job.plugin_overrides.get("pod") if job.plugin_overrides else None
    if own is not None and any(pod_mistakes(own)):
        # The plan of a role reports the mistakes.
        check_sound_part(layers.policy, own, problems)
        own = None
    check_roles(own, [name for r in job.roles for name in (r.name, r.fc_name)], problems)
    policy, flags, gpu = layers.policy, settings.pod, settings.gpu_resource
    return {
        r.name: pod_settings(policy, own, flags, r.name, [r.fc_name], problems, asked(r, gpu))
        for r in job.roles
    }


def _chosen_roles(path: str, job: Job, only: list[str], problems: Problems) -> list[Role]:
    """The roles with these names; reports a name that no role has."""
    names = {name for role in job.roles for name in (role.name, role.fc_name)}
    for name in only:
        if name not in names:
            hint = did_you_mean(name, [r.name for r in job.roles])
            problems.error("PR509", f"{path} has no role '{name}'", None, hint)
    return [r for r in job.roles if not only or {r.name, r.fc_name} & set(only)]


def _plan_role(
    layers: Layers,
    job: Job,
    role: Role,
    of_job: Mapping[str, str],
    settings: Settings,
    problems: Problems,
    vault: Vault,
) -> RolePlan:
    """Plan a role, with the environment that all its Pods share."""
    init_env: Mapping[str, str] = {}
    engine: Node | None = None
    if settings.plain:
        engine = merged(engine_layer("plain_pod.yaml", "a plain Pod"), settings.engine)
    else:
        own, _ = instance_environment(job, role, 0, pod_uid="")
        known = {k: v for k, v in own.items() if k not in _PER_INSTANCE and v}
        # Not copied: a job has a number of variables for each of its roles.
        init_env = ChainMap(known, {**of_job})
    return plan_role(
        layers,
        job,
        role,
        env={
            "init": Partial(init_env, "the environment of the Pod"),
            "runtime": RUNTIME_ENV_UNKNOWN,
        },
        cluster=POD_UNKNOWN if settings.plain else CLUSTER_UNKNOWN,
        init_plugins=settings.init_plugins,
        engine=engine,
        user_extension=USER_EXTENSION_UNKNOWN,
        vault=vault,
        problems=problems,
    )


def _verdicts(plan: RolePlan, content: Content, settings: Settings) -> dict[Phase, list[Reviewed]]:
    context = ReviewContext(env={}, pai_dir=DEFAULT_PAI_DIR)
    return {
        phase: review_phase(
            plan.plans[phase],
            plan.effective.drafts[phase],
            content,
            context,
            plan.job.parameters,
        )
        for phase in settings.phases
    }


def _secrets_read(
    content: Content, job: Job | None, problems: Problems, settings: Settings
) -> Iterator[str]:
    """The secrets in all files that were read."""
    yield from content.concealed()
    yield from secrets_of(job) if job else ()
    yield from settings.init_plugins.place.source.concealed if settings.init_plugins else ()
    for p in problems:
        yield from p.place.source.concealed if p.place else ()


_PER_INSTANCE = frozenset(
    {"PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX", "FC_TASK_INDEX", "FC_TASK_ATTEMPT_ID", "FC_POD_NAME",
     "FC_POD_UID", "FC_TASK_UID", "FC_TASKROLE_UID", "FC_TASK_ATTEMPT_INSTANCE_UID", "FC_CONFIGMAP_NAME",
     "FC_CONFIGMAP_UID", "FC_FRAMEWORK_UID", "FC_FRAMEWORK_ATTEMPT_ID",
     "FC_FRAMEWORK_ATTEMPT_INSTANCE_UID"}
)  # fmt: skip
"""Variables that differ between the Pods of a role; a review covers the whole role."""
