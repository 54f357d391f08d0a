"""Checks of a task that need no job: its module, its arguments, unbounded retries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pairun.contract.arguments import arguments, build, error_text
from pairun.contract.kinds import ArgumentProblem, shown
from pairun.errors import PairunError, Problems
from pairun.module import Module, format_duration, parse_duration
from pairun.plan import Late
from pairun.playbook.content import Content
from pairun.playbook.document.reading import Node, elements
from pairun.playbook.drafts import TaskDraft, draft_task
from pairun.playbook.expressions.template import is_template
from pairun.playbook.policy import Permission, Policy
from pairun.playbook.values import used_at


def check_tasks(tasks: Node | None, phase: str, content: Content) -> Problems:
    """Check the tasks of a file as written, including those of groups."""
    problems = Problems()
    for node in tasks.elements() if tasks else ():
        if (inner := node.get("tasks")) is not None:
            problems.extend(check_tasks(inner, phase, content))
        elif task := draft_task(node, content.modules, "file", problems):
            check_task(task, phase, content, problems)
    return problems


def check_task(task: TaskDraft, phase: str, content: Content, problems: Problems) -> None:
    """Check a task, as written in a playbook or after every layer."""
    _check_module(task, phase, content, problems)
    for node in elements(task.node, "on_exit"):
        if handler := draft_task(node, content.modules, "file", problems):
            _check_module(handler, phase, content, problems)
    if task.node.get("retries") and not (task.node.get("timeout") or task.node.get("deadline")):
        message = f"the task '{task.id}' has retries, and no limit on the time of an attempt"
        problems.warning("PR910", message, task.place, "add timeout or deadline")


def _check_module(task: TaskDraft, phase: str, content: Content, problems: Problems) -> None:
    try:
        cls = content.module(task.module)
    except PairunError as e:
        problems.extend(e.problems)
        return
    check_phase(task, cls, phase, problems)
    check_written_arguments(task, cls, problems)


def check_phase(task: TaskDraft, cls: type[Module], phase: str, problems: Problems) -> None:
    """Report a module that does not run in the phase."""
    if phase not in cls.phases:
        message = f"the module '{task.module}' does not run in {phase}"
        problems.error("PR212", message, task.args.head, f"it runs in {' and '.join(cls.phases)}")


def check_written_arguments(task: TaskDraft, cls: type[Module], problems: Problems) -> None:
    """Report arguments that the module does not accept; values with expressions are unknown."""
    pending = frozenset(k for k, n in task.args.items() if _has_expressions(n))
    check_arguments(task, cls, task.args.plain(), pending, problems)


def check_arguments(
    task: TaskDraft,
    cls: type[Module],
    values: Mapping[str, Any],
    pending: frozenset[str],
    problems: Problems,
) -> None:
    """Report arguments that the module does not accept.

    Args:
        pending: the arguments whose values are not known yet.
    """
    try:
        found = build(cls, values, pending)[1]
    except Exception as e:  # noqa: BLE001 - a module's checks may raise any exception
        message = f"the module fails on its arguments: {error_text(e)}"
        found = [ArgumentProblem((), "PR603", message)]
    for p in found:
        node = task.args.at(p.path) or task.args
        place = node.head if p.id in ("PR604", "PR606") else node.place
        message = f"{task.module}: {p.message}"
        problems.error(p.id, message, place, p.hint, used_at(task, place, node))


def check_bounds(
    task: TaskDraft,
    cls: type[Module],
    values: Mapping[str, Any],
    policy: Policy,
    problems: Problems,
) -> None:
    """Report durations that a job sets above the policy's limit, or that are not known yet."""
    for argument in arguments(cls):
        node = task.args.get(argument.name)
        longest = policy.longest(argument.bound) if argument.bound else None
        if node is None or longest is None or node.place.source.layer != "job":
            continue
        most_s, place = longest
        value = values.get(argument.name)
        seconds = parse_duration(value) if isinstance(value, str) else most_s
        if isinstance(value, Late) or seconds is None or seconds > most_s:
            words = f"at most {format_duration(most_s)}, known before the run"
            what = f"set '{argument.name}' of '{task.module}' to {shown(node.value)}"
            Permission(False, place, words).granted(problems, what, node.place)


def _has_expressions(node: Node) -> bool:
    children = [*node.elements(), *(child for _, child in node.items())]
    return is_template(node.value) or any(map(_has_expressions, children))


def check_effect(draft: TaskDraft, keywords: Mapping[str, Node], problems: Problems) -> None:
    """Report keywords of a task that have no effect.

    Args:
        draft: the task.
        keywords: its keywords without values of a wrong type, which are already reported.
    """
    written = {name: node for name, node in keywords.items() if node.value is not None}

    def report(name: str, message: str, hint: str | None = None) -> None:
        node = written[name]
        problems.error("PR207", message, node.head, hint)

    retries = written.get("retries")
    # An invalid `retries` is already reported; keywords that need it are no further error.
    unusable = "retries" not in keywords and draft.node.get("retries") is not None
    if not unusable and (retries is None or retries.value == 0):
        for name in ("delay", "retry_on"):
            if name in written and _same_layer(written[name], retries):
                report(name, f"'{name}' has no effect without retries", "add retries, or remove it")
    policy, codes = written.get("failure_policy"), written.get("exit_codes")
    ignored = (policy.value if policy else draft.failure_policy) == "ignore"
    if codes and ignored and _same_layer(codes, policy):
        report(
            "exit_codes",
            "'exit_codes' has no effect: a failure of this task is ignored",
            "remove it, or set failure_policy: fail",
        )
    timeout, deadline = written.get("timeout"), written.get("deadline")
    if timeout and deadline and _same_layer(timeout, deadline):
        timeout_s, deadline_s = (
            parse_duration(str(timeout.value)),
            parse_duration(str(deadline.value)),
        )
        if timeout_s is not None and deadline_s is not None and timeout_s > deadline_s:
            report("timeout", "'timeout' has no effect: the deadline of the whole task is shorter")


def _same_layer(one: Node, other: Node | None) -> bool:
    return other is None or one.place.source is other.place.source
