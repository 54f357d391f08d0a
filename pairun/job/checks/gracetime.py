"""Warns of exit handlers and signals that do not fit into the grace time."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pairun.base.forwarding import LATEST_STEP, Forwarding, read_forwarding
from pairun.base.grace import Grace
from pairun.errors import Place, Problem
from pairun.job.planning import RolePlan
from pairun.job.templates import command_nodes, user_command
from pairun.module import format_duration
from pairun.plan import USER_COMMAND, Late, Plan, Task
from pairun.playbook.drafts import Draft

TORCHRUN_S = 30.0
"""The fixed time between TERM and KILL that torchrun gives its workers."""

_TORCHRUN = re.compile(r"\btorchrun\b|\btorch\.distributed\.(run|launch)\b")


class PodGrace(NamedTuple):
    """The grace time that a manifest sets for its Pod.

    Attributes:
        seconds: PID 1's part of it.
        place: where the manifest sets it; None for Kubernetes' default.
    """

    seconds: float
    place: Place | None


def grace_warnings(plan: RolePlan, pod: PodGrace | None = None) -> Iterator[Problem]:
    """The warnings about handlers and signals in the user's container of a role.

    Args:
        pod: the grace time in the Pod's manifest; it overrides the playbook's.
    """
    if (runtime := plan.plans.get("runtime")) is None:
        return
    draft = plan.effective.drafts["runtime"]
    grace = Grace(runtime.grace_s if pod is None else pod.seconds)
    of_playbook = draft.grace.place if draft.grace else None
    place = of_playbook if pod is None else pod.place
    also = [] if place is None else [("the grace time", place)]
    command = next((t for t in runtime.tasks() if t.module == USER_COMMAND), None)
    yield from _handlers(runtime, draft, grace, also)
    if command is not None:
        yield from _signals(command, draft, grace, also)


_Also = list[tuple[str, Place]]


def _warning(id_: str, message: str, place: Place | None, hint: str, also: _Also) -> Problem:
    return Problem(id_, message, place, hint, "warning", tuple(also))


def _handlers(plan: Plan, draft: Draft, grace: Grace, also: _Also) -> Iterator[Problem]:
    needed_s = 0.0
    places = []
    drafts = draft.by_id()
    for task in plan.tasks():
        if task.when is False:
            continue
        task_draft = drafts.get(task.id)
        for handler in task.on_exit:
            if "signal" not in handler.events or (longest := _longest_s(handler)) is None:
                continue
            needed_s += longest
            if task_draft is not None:
                handlers = task_draft.node.get("on_exit")
                places.append(
                    task_draft.used_at or (handlers.place if handlers else task_draft.place)
                )
    if needed_s > grace.handlers_s:
        message = (
            f"after a stop the exit handlers may take {format_duration(needed_s)}, and the grace "
            f"time of {format_duration(grace.seconds)} leaves them "
            f"{format_duration(grace.handlers_s)}"
        )
        hint = "shorten their timeouts, or raise grace together with the Pod's own grace period"
        yield _warning("PR920", message, places[-1] if places else None, hint, also)


def _longest_s(handler: Task) -> float | None:
    """A handler's own time limit; None if it has none and gets a share of the grace time."""
    attempts = None if handler.timeout_s is None else handler.timeout_s * (handler.retries + 1)
    return min((s for s in (handler.deadline_s, attempts) if s is not None), default=None)


def torchrun_warnings(plans: Sequence[RolePlan], pod: PodGrace | None = None) -> Iterator[Problem]:
    """One warning for all roles whose torchrun may outlive the command's part of the grace time.

    Args:
        pod: the grace time in the Pod's manifest; it overrides the playbook's.
    """
    also = [("the grace time", pod.place)] if pod is not None and pod.place else []
    by_time: dict[float, list[tuple[str, Place | None]]] = {}
    for plan in plans:
        if (runtime := plan.plans.get("runtime")) is None:
            continue
        command_s = Grace(runtime.grace_s if pod is None else pod.seconds).command_s
        if command_s < TORCHRUN_S and (use := _torchrun_use(plan, runtime)):
            by_time.setdefault(command_s, []).append((plan.role.name, use[0]))
    for command_s, uses in by_time.items():
        limit = format_duration(command_s)
        names = ", ".join(name for name, _ in uses)
        roles = f" (roles {names})" if len(uses) > 1 else ""
        yield _warning(
            "PR921",
            f"torchrun gives its workers {format_duration(TORCHRUN_S)} to end after a stop, and "
            f"the command's part of the grace time is {limit}{roles}",
            uses[0][1],
            f"save in the workers within {limit} after SIGTERM; "
            + (
                "or raise terminationGracePeriodSeconds in the manifest, and inject it again"
                if pod is not None
                else "only the cluster's operator can raise the grace time"
            ),
            also,
        )


def _torchrun_use(plan: RolePlan, runtime: Plan) -> tuple[Place | None] | None:
    """Where the command of a role starts torchrun, if the place is known; None if it does not."""
    command = next((t for t in runtime.tasks() if t.module == USER_COMMAND), None)
    argv = None if command is None else command.args.get("argv")
    if command is not None and isinstance(argv, list):
        if not _TORCHRUN.search(" ".join(map(str, argv))):
            return None
        return (_place_of_argument(plan.effective.drafts["runtime"], command, "argv"),)
    if not _TORCHRUN.search(user_command(plan.job, plan.role)):
        return None
    nodes = command_nodes(plan.job, plan.role)
    return (next((n.place for n in nodes if _TORCHRUN.search(str(n.value))), nodes[0].place),)


def _signals(command: Task, draft: Draft, grace: Grace, also: _Also) -> Iterator[Problem]:
    if (forwarding := _forwarding(command)) is None:
        return
    place = _place_of_argument(draft, command, "signals")
    for number in (signal.SIGTERM, signal.SIGINT):
        steps = forwarding.steps(number)
        last_s = max((s.after_s for s in steps), default=0.0)
        if last_s > grace.command_s:
            yield _warning(
                "PR922",
                f"the signal due {format_duration(last_s)} after {number.name} is sent "
                f"earlier: the command's part of the grace time is "
                f"{format_duration(grace.command_s)}",
                place,
                f"it is sent after {format_duration(LATEST_STEP * grace.command_s)}; shorten the "
                "wait, or raise grace together with the Pod's own grace period",
                also,
            )
    if not forwarding.steps(signal.SIGTERM):
        message = "the command gets no signal at a stop, and is killed at the end of its time"
        hint = "send it the signal that it saves its work on: SIGTERM: SIGUSR1"
        yield _warning("PR923", message, place, hint, [])


def _place_of_argument(draft: Draft, task: Task, argument: str) -> Place | None:
    task_draft = draft.find(task.id)
    module = task_draft.node.get(task.module) if task_draft else None
    node = module.get(argument) if module else None
    return node.head if node else None


def _forwarding(command: Task) -> Forwarding | None:
    signals = command.args.get("signals")
    if isinstance(signals, Late):
        return None
    try:
        return read_forwarding(signals, command.args.get("signals_to"))
    except ValueError:
        return None  # the check of the module's arguments reports it
