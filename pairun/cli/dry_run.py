"""``pairun --dry-run JOB…``: what will happen, in which order, with which values, set by whom."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import attrs

import pairun
from pairun.base.paths import DEFAULT_PAI_DIR
from pairun.contract.arguments import arguments
from pairun.errors import PairunError, Place, Problem, Problems, Source, did_you_mean, nearest
from pairun.host.worlds import ProbeContext, ReviewContext
from pairun.job.checks.gracetime import grace_warnings
from pairun.job.checks.surprises import job_warnings
from pairun.job.jobfile import load_job
from pairun.job.model import Job, Role
from pairun.job.planning import (
    CLUSTER_UNKNOWN,
    POD_UNKNOWN,
    RolePlan,
    plan_role,
    secrets_of,
)
from pairun.job.templates import user_command
from pairun.module import Phase
from pairun.openpai.platform import platform_environment
from pairun.plan import USER_COMMAND
from pairun.playbook.compiling import history, place_of
from pairun.playbook.content import Content, open_content
from pairun.playbook.document.reading import Node, decode, load_bytes
from pairun.playbook.drafts import TaskDraft
from pairun.playbook.effective import Layers
from pairun.playbook.expressions.views import Partial, Unknown
from pairun.playbook.keywords import keywords_of
from pairun.playbook.specs import PHASES
from pairun.report.problems import print_problems
from pairun.report.review_text import ReviewText, summary
from pairun.review.settings import NO_SETTINGS, Settings, read_settings
from pairun.review.taskreview import (
    SCHEMA,
    Reviewed,
    as_data,
    problem_data,
    review_phase,
    shown_data,
)
from pairun.secrets.shapes import logins, with_secrets
from pairun.secrets.vault import Vault

RUNTIME_ENV = Unknown("the environment of the user's container", optional=True)
USER_EXTENSION = Unknown("the user's extension, which is mounted into the Pod", optional=True)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("jobs", nargs="*", metavar="JOB", help="job files; - is standard input")
    parser.add_argument(
        "--root",
        action="append",
        default=[],
        metavar="DIR",
        help="a content root: a cluster's playbooks, policy, modules, plugins",
    )
    parser.add_argument("--init-config", metavar="FILE",
                        help="init plugins, instead of INIT_CONFIG or init_plugins.yaml")  # fmt: skip
    parser.add_argument("--runtime-config", metavar="FILE",
                        help="review a plain Pod with these commands and plugins")  # fmt: skip
    parser.add_argument("--role", action="append", default=[], help="only this role")
    parser.add_argument("--user", default="user", help="who submits the job")
    parser.add_argument("--json", action="store_true", help="JSON on standard output")
    parser.add_argument(
        "--why",
        metavar="ID.PATH",
        action="append",
        default=[],
        help="who set a value: git.args.depth, barrier.retries",
    )
    parser.add_argument("--exit-code", action="store_true",
                        help="exit with 2 when something would change")  # fmt: skip


@attrs.frozen(kw_only=True)
class JobReview:
    """The review of one job file.

    Attributes:
        path: the file.
        job: the job, or None when it is not valid.
        plans: a plan per role.
        tasks: role to phase to reviewed tasks.
        problems: everything found.
        vault: masks the job's secrets.
        settings: what the cluster sets, and what kind of Pod it is.
    """

    path: str
    job: Job | None
    plans: tuple[RolePlan, ...]
    tasks: Mapping[str, Mapping[Phase, list[Reviewed]]]
    problems: Problems
    vault: Vault
    settings: Settings = NO_SETTINGS


def run(args: argparse.Namespace) -> int:
    """Review the jobs; 0 valid, 1 errors, 2 with ``--exit-code`` when something would change."""
    try:
        return _review(args)
    except PairunError as e:
        if not args.json:
            raise
        problems = [problem_data(p) for p in e.problems]
        _print_document({"schema": SCHEMA, "roles": {}, "problems": problems})
        return 2 if all(p.id == "PR801" for p in e.problems) else 1


def _review(args: argparse.Namespace) -> int:
    if not (args.jobs or args.init_config or args.runtime_config):
        raise PairunError(
            Problem(
                "PR801",
                "--dry-run needs a job file",
                hint="pairun --dry-run JOB; - is standard input",
            )
        )
    if args.json and args.why:
        hint = "the JSON holds every override: leave out --why"
        raise PairunError(
            Problem("PR801", "--why prints text, and --json nothing but JSON", hint=hint)
        )
    content = open_content(args.root, os.environ)
    layers = Layers(content)
    # Settings that cannot be read are found before a job is looked at.
    settings = read_settings(args.init_config)
    reviews = [review_job(path, layers, args.user, args.role, settings) for path in args.jobs]
    if args.runtime_config or not args.jobs:
        reviews.append(review_pod(args.runtime_config, layers, args.user, settings))
    if args.json:
        _print_json(reviews)
    else:
        for review in reviews:
            if args.why:
                _print_why(review, args.why, content)
            else:
                _print_text(review, content)
        for review in reviews:
            print_problems(review.problems, vault=review.vault)
    if any(r.problems.errors for r in reviews):
        return 1
    # The user's command always does something; the question is what comes before it.
    changes = any(
        t.verdict.kind in ("will_change", "unknown") and t.module != USER_COMMAND
        for r in reviews for role in r.tasks.values() for tasks in role.values() for t in tasks
    )  # fmt: skip
    return 2 if args.exit_code and changes else 0


def review_job(
    path: str, layers: Layers, user: str, only: list[str], settings: Settings = NO_SETTINGS
) -> JobReview:
    """Review a job file against an empty Pod: nothing of this machine is looked at."""
    return review_loaded(path, *load_job(path, user=user), layers, only, settings)


def review_pod(path: str | None, layers: Layers, user: str, settings: Settings) -> JobReview:
    """Review a plain Pod likewise.

    Args:
        path: its commands and plugins, or None for its init phase alone.
        layers: the content roots, read.
        user: whose it is.
        settings: what the cluster sets.

    Raises:
        PairunError: the file cannot be read.
    """
    from pairun.openpai.plainpod import no_commands, read_plain_job, without_server_warnings

    source = no_commands() if path is None else decode(load_bytes(path), path, "job")
    job, problems = read_plain_job(source, user=user)
    plain = attrs.evolve(settings, plain=True, phases=PHASES if path else ("init",))
    review = review_loaded(source.file, job, problems, layers, [], plain)
    kept = Problems()
    kept.extend(without_server_warnings(list(review.problems)))
    return attrs.evolve(review, problems=kept)


def review_loaded(
    path: str,
    job: Job | None,
    problems: Problems,
    layers: Layers,
    only: list[str],
    settings: Settings = NO_SETTINGS,
) -> JobReview:
    """Review a job that was read already.

    Args:
        path: where it comes from.
        job: the job, or None when it is not valid.
        problems: what was found while it was read; takes what is found now.
        layers: the content roots, read.
        only: the roles to look at, all when empty.
        settings: what the cluster sets, and what kind of Pod it is.
    """
    problems.extend(settings.warnings)
    plans: list[RolePlan] = []
    tasks: dict[str, dict[Phase, list[Reviewed]]] = {}
    if job is not None:
        problems.extend(job_warnings(job))
        for name in only:
            if name not in {n for r in job.roles for n in (r.name, r.fc_name)}:
                hint = did_you_mean(name, [r.name for r in job.roles])
                problems.error("PR509", f"{path} has no role '{name}'", None, hint)
        for role in job.roles:
            if only and not {role.name, role.fc_name} & set(only):
                continue
            try:
                plan = _plan(layers, job, role, settings, problems)
                _warn_of_the_unfinished(plan, layers.content, problems)
                problems.extend(grace_warnings(plan))
                tasks[role.name] = _reviewed(plan, layers.content, settings)
                plans.append(plan)
            except PairunError as e:
                problems.extend(e.problems)
    vault = Vault(_concealed(layers.content, job, problems, settings))
    if job is not None:
        _hide_lines(job.node.place.source, vault)
    return JobReview(
        path=path,
        job=job,
        plans=tuple(plans),
        tasks=tasks,
        problems=problems,
        vault=vault,
        settings=settings,
    )


def _concealed(
    content: Content, job: Job | None, problems: Problems, settings: Settings
) -> Iterator[str]:
    """What a review may not show, of whatever was read."""
    yield from content.concealed()
    yield from secrets_of(job) if job else ()
    yield from settings.init_plugins.place.source.concealed if settings.init_plugins else ()
    for p in problems:
        yield from p.place.source.concealed if p.place else ()


def _warn_of_the_unfinished(plan: RolePlan, content: Content, problems: Problems) -> None:
    used_at = {use.base_id: use.place for use in plan.uses}
    for draft in plan.effective.drafts.values():
        planned = {t.id: t for t in plan.plans[draft.phase].tasks()}
        for draft_task in draft.tasks():
            task = planned.get(draft_task.id)
            if task is None or task.when is False:
                continue
            if not_yet := content.module(task.module).not_yet:
                message = f"{task.id}: not part of this version: {not_yet}"
                problems.warning("PR908", message, used_at.get(task.id, draft_task.place))


def _hide_lines(source: Source, vault: Vault) -> None:
    """Keep lines with a secret out of excerpts, which may cut it in two."""
    for number, line in enumerate(source.text.split("\n"), 1):
        if vault.text(line) != line:
            source.hide(number, number)


def _plan(layers: Layers, job: Job, role: Role, settings: Settings, problems: Problems) -> RolePlan:
    init_env: dict[str, str] = {}
    engine = None
    if settings.plain:
        from pairun.openpai.startlayers import start_layer

        engine = start_layer("plain_pod.yaml", "a plain Pod")
    else:
        init_env, _ = platform_environment(job, role, 0, pod_uid="")
        init_env = {k: v for k, v in init_env.items() if k not in _PER_INSTANCE and v}
    return plan_role(
        layers,
        job,
        role,
        env={"init": Partial(init_env, "the environment of the Pod"), "runtime": RUNTIME_ENV},
        cluster=POD_UNKNOWN if settings.plain else CLUSTER_UNKNOWN,
        init_plugins=settings.init_plugins,
        engine=engine,
        user_extension=USER_EXTENSION,
        problems=problems,
    )


def _reviewed(plan: RolePlan, content: Content, settings: Settings) -> dict[Phase, list[Reviewed]]:
    context = ReviewContext(env={}, pai_dir=DEFAULT_PAI_DIR)
    return {
        phase: review_phase(plan.plans[phase], plan.effective.drafts[phase], content, context)
        for phase in settings.phases
    }


_PER_INSTANCE = frozenset(
    {"PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX", "FC_TASK_INDEX", "FC_TASK_ATTEMPT_ID", "FC_POD_NAME",
     "FC_POD_UID", "FC_TASK_UID", "FC_TASKROLE_UID", "FC_TASK_ATTEMPT_INSTANCE_UID", "FC_CONFIGMAP_NAME",
     "FC_CONFIGMAP_UID", "FC_FRAMEWORK_UID", "FC_FRAMEWORK_ATTEMPT_ID",
     "FC_FRAMEWORK_ATTEMPT_INSTANCE_UID"}
)  # fmt: skip
"""Variables that only a Pod has; a review is of a role."""


# --- JSON ----------------------------------------------------------------------------------------


def _print_json(reviews: list[JobReview]) -> None:
    documents = {r.path: _document(r) for r in reviews}
    whole: dict[str, Any]
    if len(documents) == 1:
        whole = {"schema": SCHEMA, **next(iter(documents.values()))}
    else:
        whole = {"schema": SCHEMA, "jobs": documents}
    _print_document(whole)


def _print_document(document: dict[str, Any]) -> None:
    print(json.dumps(document, indent=2, ensure_ascii=False))


def _document(review: JobReview) -> dict[str, Any]:
    roles: dict[str, dict[str, Any]] = {}
    for plan in review.plans:
        assert review.job is not None
        role = roles[plan.role.name] = {"user_command": _command(review.job, plan.role)}
        for phase, tasks in review.tasks[plan.role.name].items():
            role[phase] = [as_data(t, review.vault) for t in tasks]
    problems = [problem_data(p, review.vault) for p in review.problems]
    return {"roles": roles, "problems": problems}


def _command(job: Job, role: Role) -> str:
    text = user_command(job, role)
    return Vault(logins(text)).text(text)


# --- text ----------------------------------------------------------------------------------------


def _print_text(review: JobReview, content: Content) -> None:
    text = ReviewText(sys.stdout, review.vault)
    built_in = all(r.layer == "built-in" for r in content.roots)
    roots = ", ".join(
        " ".join([r.layer, *([r.path] if r.layer != "built-in" else []), r.digest()])
        for r in content.roots
    )
    none = " · no cluster layer is among them" if built_in else ""
    text.wrapped(f"pairun {pairun.__version__} · content roots: {roots}{none}", hang="  ")
    if built_in:
        text.line("your cluster may have other defaults: give its content root with --root DIR")
    job = review.job
    if job is None:
        text.wrapped(f"{review.path} is not valid")
        return
    if (listed := review.settings.init_plugins) is not None:
        text.wrapped(f"init plugins: {listed.place.source.file}", hang="  ")
    if review.settings.plain:
        _print_pod(text, review)
        return
    count = sum(r.instances for r in job.roles)
    text.wrapped(
        f"job {job.name} of {job.user} · {len(job.roles)} role{'s' * (len(job.roles) > 1)}, "
        f"{count} instance{'s' * (count > 1)} · {review.path}",
        hang="  ",
    )
    seen: dict[tuple[str, str], str] = {}
    for plan in review.plans:
        role = plan.role
        text.line()
        image = role.image.node.get("uri")
        text.wrapped(
            f"role {role.name} · {role.instances} instance{'s' * (role.instances > 1)} · "
            f"image {image.value if image else '?'}",
            hang="  ",
        )
        for line in _platform_lines(role):
            text.wrapped(f"  {line}", hang="    ")
        for phase, tasks in review.tasks[role.name].items():
            shown = json.dumps([{**as_data(t, review.vault), "where": ""} for t in tasks])
            first = seen.setdefault((phase, shown), role.name)
            if first != role.name:
                text.phase(f"{phase}: as in role {first}", [])
            else:
                text.phase(phase, tasks)
    text.line()
    text.line(
        summary(
            {f"{n}/{p}": t for n, role_tasks in review.tasks.items() for p, t in role_tasks.items()}
        )
    )


def _print_pod(text: ReviewText, review: JobReview) -> None:
    text.wrapped(f"a plain Pod, no job of OpenPAI: it is alone · {review.path}", hang="  ")
    for role, phases in review.tasks.items():
        for phase, tasks in phases.items():
            text.line()
            text.phase(phase, tasks)
        text.line()
        text.line(summary({f"{role}/{p}": t for p, t in phases.items()}))


def _platform_lines(role: Role) -> list[str]:
    """What the platform reads of a role: no task shows it, and a reviewer wants to know it."""
    asked = role.resources
    ports = ", ".join(f"{label} {count}" for label, count in asked.ports.items())
    ends = []
    if role.min_failed > 0:
        ends.append(f"{role.min_failed} failed")
    if role.min_succeeded > 0:
        ends.append(f"{role.min_succeeded} succeeded")
    counted = " or ".join(ends)
    end = f"with {counted} of its instances" if ends else "when every instance has ended"
    return [
        f"cpu {asked.cpu}, memory {asked.memory_mb} MB, gpu {asked.gpu}"
        + (f", ports: {ports}" if ports else ""),
        f"the job ends {end}",
    ]


def _print_why(review: JobReview, wanted: list[str], content: Content) -> None:
    text = ReviewText(sys.stdout, review.vault)
    for path in wanted:
        printed = set()
        for plan in review.plans:
            node = _find(plan, path)
            key = path.rpartition(".")[2]
            chain = [_who(key, n.plain(), p) for n, p in history(node)] if node else []
            if not chain or tuple(chain) in printed:
                continue
            printed.add(tuple(chain))
            text.wrapped(f"{path} (role {plan.role.name})")
            for n, each in enumerate(chain):
                text.wrapped(("└ " if n else "") + each, "  " + "  " * n, hang="  ")
        if not printed:
            _nobody(review, path, content)


def _find(plan: RolePlan, path: str) -> Node | None:
    """The node that a path of an id and keys leads to; both may have dots themselves."""
    for draft in plan.effective.drafts.values():
        for task in draft.tasks():
            if path.startswith(f"{task.id}."):
                node = place_of(task, path.removeprefix(f"{task.id}."))
                if node is not None:
                    return node
    return None


def _nobody(review: JobReview, path: str, content: Content) -> None:
    tasks = [t for p in review.plans for d in p.effective.drafts.values() for t in d.tasks()]
    known = {t.id: t for t in tasks}
    own = next((t for i, t in known.items() if path == i or path.startswith(f"{i}.")), None)
    review.problems.error(
        "PR401",
        f"nobody sets '{path}'",
        None,
        did_you_mean(path.partition(".")[0], sorted(known))
        if own is None
        else _no_such_path(own, path.removeprefix(own.id)[1:], content),
    )


def _no_such_path(task: TaskDraft, rest: str, content: Content) -> str:
    """What to say of a path below a task that leads to nothing."""
    try:
        known = [a.name for a in arguments(content.module(task.module))]
    except PairunError:
        known = []
    keywords = [k for k in keywords_of("task") if k != "args"]
    first, second = [*rest.split(".", 2), ""][:2]
    if rest and (first in keywords or (first == "args" and second in known)):
        return "it has its default"
    if first in known:
        return f"did you mean '{task.id}.args.{rest}'?"
    near = nearest(rest, [*keywords, *(f"args.{a}" for a in known)]) or nearest(first, known)
    if near is not None:
        return f"did you mean '{task.id}.{f'args.{near}' if near in known else near}'?"
    return "a path begins with an id and a keyword: barrier.retries, barrier.args.timeout"


def _who(key: str, value: Any, place: Place) -> str:
    # also what is too short for a vault
    shown = json.dumps(shown_data(with_secrets(value, key), Vault()), ensure_ascii=False)
    return f"{shown}  ← {place.source.layer} {place}"


# --- where a phase stands --------------------------------------------------------------------------


def review_here(
    planned: RolePlan, phase: Phase, content: Content, env: Mapping[str, str], pai_dir: str
) -> int:
    """Review a phase in its own container: real probes, no change."""
    context = ProbeContext(env=env, pai_dir=pai_dir, deadline=None)
    tasks = review_phase(planned.plans[phase], planned.effective.drafts[phase], content, context)
    text = ReviewText(sys.stdout, Vault([*content.concealed(), *secrets_of(planned.job)]))
    text.phase(phase, tasks)
    text.line(summary({phase: tasks}))
    return 0
