"""One side of ``pairun diff``: jobs planned with a stack of roots, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from pairun.contract.sources import read_source
from pairun.errors import PairunError, Problem, Problems
from pairun.job.jobfile import read_input
from pairun.job.jsyaml import dialect_named
from pairun.job.planning import RolePlan
from pairun.job.stored import load_input
from pairun.module import Phase
from pairun.plan import USER_COMMAND
from pairun.playbook.content import Content, Root, built_in_root
from pairun.playbook.effective import Layers
from pairun.playbook.pluginfolders import folder_plugins
from pairun.playbook.rootfiles import PLAYBOOK_FILES, not_a_root
from pairun.review.diff.compare import RoleSide, TaskSide
from pairun.review.diff.values import Value, grace, pod_values, task_values
from pairun.review.jobreview import JobReview, review_loaded
from pairun.review.taskreview import Reviewed
from pairun.secrets.vault import Vault

BUILT_IN = "built-in"


@attrs.frozen(kw_only=True)
class JobSide:
    """A job with one side's roots, as plain data.

    Attributes:
        roles: role name to its plan as data; None if pairun could not plan it.
        problems: all problems.
        name: the job's name; None if it is not valid.
    """

    roles: Mapping[str, RoleSide | None]
    problems: Problems
    name: str | None


def stacked(side: str) -> Content:
    """The stack of roots that an argument names.

    A complete root, which some version of pairun contains, replaces this version's built-in root.
    Neither side has the environment's roots: the command line alone decides.

    Args:
        side: folders, separated by ``:``; `BUILT_IN` alone or first is this version's own root.

    Raises:
        PairunError: a folder is not a content root, or a complete root is not the first one.
    """
    roots = [built_in_root()]
    for n, path in enumerate(side.split(":")):
        if path == BUILT_IN and n == 0:
            continue
        if problem := not_a_root(path):
            raise PairunError(problem)
        if not is_whole(path):
            roots.append(Root(path=path, layer="cluster"))
        elif n:
            message = f"{path} is a complete content root, so it must be the first"
            raise PairunError(Problem("PR801", message, hint="write it first"))
        else:
            roots = [Root(path=path, layer="built-in")]
    return Content(roots)


def is_whole(path: str) -> bool:
    """Whether a root is complete: it needs no other root below it."""
    own = Root(path=path, layer="built-in")
    return USER_COMMAND in own.modules() and all(
        name in own.files("playbooks") for name in PLAYBOOK_FILES
    )


def loaded(path: str) -> bytes | PairunError:
    """Read the bytes of a job file; returns the error if that fails."""
    try:
        return load_input(path)
    except PairunError as e:
        return e


def side_of(
    content: Content,
    texts: Mapping[str, bytes | PairunError],
    user: str,
    only: list[str],
    vault: Vault,
) -> dict[str, JobSide]:
    """Plan every job with one side's roots, which are read once.

    Args:
        content: the roots.
        texts: file name to its bytes, or to the error of reading it.
        user: the user who submits the jobs.
        only: the roles to review; all if empty.
        vault: collects every secret that is read.

    Raises:
        PairunError: the roots cannot be read.
    """
    layers = Layers(content)
    return {path: _job(layers, path, text, user, only, vault) for path, text in texts.items()}


def _job(
    layers: Layers,
    path: str,
    text: bytes | PairunError,
    user: str,
    only: list[str],
    vault: Vault,
) -> JobSide:
    if isinstance(text, PairunError):
        job, problems = None, Problems()
        problems.extend(text.problems)
    else:
        dialect = dialect_named(layers.policy.job_yaml)
        job, problems = read_input(text, path, user=user, dialect=dialect)
    review = review_loaded(path, job, problems, layers, only, vault=vault)
    planned = {p.role.name: _role(p, review, layers.content) for p in review.plans}
    roles = [r for r in (job.roles if job else ()) if not only or {r.name, r.fc_name} & set(only)]
    return JobSide(
        roles={r.name: planned.get(r.name) for r in roles},
        problems=review.problems,
        name=job.name if job else None,
    )


def _role(plan: RolePlan, review: JobReview, content: Content) -> RoleSide:
    drafts = plan.effective.drafts
    used = sorted({n for p in plan.plans.values() for n in p.modules})
    files = {n: content.module_file(n) for n in used}
    return RoleSide(
        tasks={
            phase: [_task(t, plan, phase, content) for t in tasks]
            for phase, tasks in review.tasks[plan.role.name].items()
        },
        grace={phase: grace(p, drafts[phase]) for phase, p in plan.plans.items()},
        modules={
            n: (f"{content.modules[n][1].layer} {file.path}", file.sha256)
            for n, file in files.items()
        },
        plugins=_plugins(plan, content),
        pod=pod_values(review.pods[plan.role.name], review.problems),
    )


def _plugins(plan: RolePlan, content: Content) -> dict[str, Any]:
    """The contents of a role's plugins: a spec, or a folder with a program."""
    folders = folder_plugins(content, plan.effective.policy).folders
    made: dict[str, Any] = {}
    for name in {use.plugin for use in plan.uses}:
        if name in folders:
            made[name] = read_source(name, folders[name].path).sha256()
        elif name in content.specs:
            made[name] = content.document(*content.specs[name]).plain()
    return made


def _task(reviewed: Reviewed, plan: RolePlan, phase: Phase, content: Content) -> TaskSide:
    draft = plan.effective.drafts[phase]
    own = draft.find(reviewed.id)
    values = {}
    if reviewed.task is not None and own is not None:
        values = task_values(reviewed.task, own.node, own, draft.vars, content.module)
        if reviewed.group:
            where = f"{reviewed.layer} {reviewed.where}"
            values[("parallel",)] = Value(value=reviewed.group, setter=where)
    return TaskSide(
        id=reviewed.id,
        name=reviewed.name,
        module=reviewed.module,
        layer=reviewed.layer,
        where=reviewed.where,
        disabled=reviewed.disabled or (None if reviewed.task else "what is wrong with it"),
        values=values,
    )
