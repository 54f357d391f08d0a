"""Compares what OpenPAI's own runtime and pairun do with a job."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pairun.base.records import record
from pairun.errors import Problems
from pairun.job.model import Job, Role
from pairun.job.planning import RolePlan
from pairun.kube.cluster import cluster_from_framework
from pairun.openpai.environment import runtime_environment
from pairun.openpai.framework import make_framework, with_statuses
from pairun.openpai.original.met import Met, cases_of
from pairun.openpai.original.scripts import scripts_of
from pairun.openpai.original.table import Step, steps
from pairun.openpai.platform import platform_environment
from pairun.plan import USER_COMMAND, Task
from pairun.playbook.effective import Layers
from pairun.playbook.inputs import PluginUse
from pairun.review.jobreview import review_job
from pairun.secrets.vault import Vault

BEFORE, COMMAND, AFTER = "before the command", "the command", "after it succeeded"
INIT = "init"
ITSELF = "(init itself)"


@record
class Pair:
    """One action of a container in both runtimes.

    Attributes:
        part: when: init, before the command, the command, or after its success.
        there: the original's step or script; empty if it has none.
        here: the ids of pairun's tasks.
        codes_there: the original's exit codes for a failure, as text.
        codes_here: pairun's exit codes.
    """

    part: str
    there: str
    here: tuple[str, ...]
    codes_there: str = ""
    codes_here: str = ""


@record
class RoleAgainst:
    """A role in both runtimes.

    Attributes:
        name: the role's name.
        pairs: the actions, in order.
        variables: the names of variables that both set for the command.
        more_variables: the names of variables that only pairun sets.
        cases: the cases of the table that apply to the role.
    """

    name: str
    pairs: Sequence[Pair]
    variables: Sequence[str]
    more_variables: Sequence[str]
    cases: Sequence[Met]

    @property
    def ends(self) -> int | None:
        """The exit code of the original's init, if a case determines it; else None."""
        return next((c.ends for c in self.cases if c.ends and c.id != "ssh-extension"), None)


@record
class JobAgainst:
    """A job in both runtimes; ``problems`` are pairun's."""

    path: str
    job: Job | None
    roles: Sequence[RoleAgainst]
    problems: Problems
    vault: Vault


def against_openpai(
    path: str, layers: Layers, user: str, only: list[str], vault: Vault
) -> JobAgainst:
    """Compare what both runtimes do with a job.

    Args:
        path: the job file.
        layers: the content roots, already read.
        user: the user who submits the job.
        only: the roles to compare; all if empty.
        vault: collects every secret that is read.
    """
    review = review_job(path, layers, user, only, vault=vault)
    roles = tuple(_role(plan) for plan in review.plans)
    return JobAgainst(
        path=path, job=review.job, roles=roles, problems=review.problems, vault=review.vault
    )


def _role(plan: RolePlan) -> RoleAgainst:
    job, role = plan.job, plan.role
    both, more = _variables(job, role)
    return RoleAgainst(
        name=role.name,
        pairs=(*_init(plan), *_runtime(plan)),
        variables=both,
        more_variables=more,
        cases=cases_of(job, role, plan.uses),
    )


def _variables(job: Job, role: Role) -> tuple[list[str], list[str]]:
    """The variables that both set for the first instance's command, and those that pairun adds."""
    pods = {
        r.fc_name: [{"podUID": "0", "podHostIP": "10.0.0.1"} for _ in range(r.instances)]
        for r in job.roles
    }
    framework = with_statuses(make_framework(job), pods)
    raw = {r.fc_name: r.name for r in job.roles}
    _, platform = platform_environment(job, role, 0, pod_uid="0")
    there, here = (
        [
            n
            for n, _ in runtime_environment(
                cluster_from_framework(framework, role.fc_name, 0, names)
            )
        ]
        for names in ({}, raw)
    )
    both = [*platform, *there]
    return both, [n for n in here if n not in both]


# --- what runs -----------------------------------------------------------------------------------


def _init(plan: RolePlan) -> Iterator[Pair]:
    tasks = {t.id: t for t in plan.plans["init"].tasks() if t.when is not False}
    origins = {d.id: d.origin for d in plan.effective.drafts["init"].tasks()}
    plugins = tuple(i for i in tasks if origins.get(i) == "plugin")
    paired = {*plugins}
    for step in steps():
        if step.gang is not None and step.gang != plan.job.gang:
            continue
        here = plugins if step.task == "plugins" else (step.task,) if step.task in tasks else ()
        paired |= {*here}
        if step.task == "init":
            here = (ITSELF,)
        yield _pair_of(step, here, tasks)
    for id_, task in tasks.items():
        if id_ not in paired:
            yield Pair(part=INIT, there="", here=(id_,), codes_here=_codes([task]))


def _pair_of(step: Step, here: tuple[str, ...], tasks: dict[str, Task]) -> Pair:
    return Pair(
        part=INIT,
        there=step.step,
        here=here,
        codes_there=step.exit_codes,
        codes_here=_codes([tasks[i] for i in here if i in tasks]),
    )


def _codes(tasks: Sequence[Task]) -> str:
    """The exit codes of failed init tasks, as text."""
    words = {f"{kind} {code}": None for t in tasks for kind, code in t.exit_codes.items()}
    ignored = bool(tasks) and all(t.failure_policy == "ignore" for t in tasks)
    return "none: ignored" if ignored else ", ".join([*words, "else 1" if words else "1"])


def _runtime(plan: RolePlan) -> Iterator[Pair]:
    tasks = [t for t in plan.plans["runtime"].tasks() if t.when is not False]
    drafts = {d.id: d for d in plan.effective.drafts["runtime"].tasks()}
    by_use = [
        [t for t in tasks if drafts[t.id].used_at is not None and drafts[t.id].used_at == use.place]
        for use in plan.uses
    ]
    of_plugins = {t.id for own in by_use for t in own}
    for task in tasks:
        if task.id not in of_plugins and task.module != USER_COMMAND:
            yield Pair(part=BEFORE, there="", here=(task.id,))
    numbered = list(enumerate(zip(plan.uses, by_use, strict=True)))
    for number, (use, own) in numbered:
        there = _script("pre", number, use, scripts_of(use, plan.job, plan.role).pre)
        if there or own:
            yield Pair(part=BEFORE, there=there, here=tuple(t.id for t in own))
    command = tuple(t.id for t in tasks if t.module == USER_COMMAND)
    yield Pair(part=COMMAND, there="user.sh", here=command)
    for number, (use, own) in reversed(numbered):
        there = _script("post", number, use, scripts_of(use, plan.job, plan.role).post)
        here = tuple(h.id for t in own for h in t.on_exit if h.events == ("success",))
        if there or here:
            yield Pair(part=AFTER, there=there, here=here)


def _script(kind: str, number: int, use: PluginUse, is_written: bool | None) -> str:
    """The original's script of a plugin, as text; empty if it writes none."""
    if is_written is False:
        return ""
    perhaps = " (if its program writes it)" if is_written is None else ""
    return f"plugin_{kind}{number}.sh of {use.plugin}{perhaps}"
