"""The init phase of a Pod, step by step: plan, run the tasks, hand over, run the exit handlers."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import attrs

from pairun.base.paths import journal_file
from pairun.contract.loading import plan_loader
from pairun.errors import PairunError
from pairun.executor.phase import Executor
from pairun.executor.shared import Shared
from pairun.init.eventsender import EventSender
from pairun.init.handingover import hand_over, prepare
from pairun.init.podinput import has_cluster
from pairun.init.podplans import PodPlans
from pairun.job.planning import RolePlan
from pairun.openpai.environment import cluster_facts
from pairun.plan import Late, Plan
from pairun.playbook.drafts import Origins
from pairun.playbook.expressions.template import resolve
from pairun.report.console import Console
from pairun.report.shown import override_data, source_data
from pairun.review.taskreview import overrides_of, sources_of
from pairun.secrets.vault import Vault
from pairun.volume.door import Door
from pairun.volume.journal import Emit, Journal, Record
from pairun.volume.logjournal import LogJournal
from pairun.volume.stopnote import read_stop_note

if TYPE_CHECKING:
    from pairun.rendezvous.peers import JobPeers

API_EXIT_CODES = dict.fromkeys(("PR770", "PR771", "PR772", "PR774"), 252)
"""Permanent refusals of the API server get the barrier's exit code; all other errors get 1."""


def review_phase(plans: PodPlans) -> None:
    """Print what the init tasks would do here; probes are real, and nothing changes."""
    # imported here: only `pairun init --dry-run` needs them
    from pairun.report.review_text import print_phase
    from pairun.review.taskreview import probe_phase

    made = plans.make()
    plan, draft = made.plans["init"], made.effective.drafts["init"]
    tasks = probe_phase(plan, draft, plans.layers.content, plans.env, plans.pai_dir, plans.vault)
    print_phase("init", tasks, plans.vault, sys.stdout)


def run_phase(plans: PodPlans) -> int:
    """Run the init phase.

    Returns:
        The exit code of the init container.

    Raises:
        PairunError: the plans are invalid; no task has run.
    """
    made = plans.make()
    plan = made.plans["init"]
    volume = prepare(plans)
    console = Console(sys.stdout, plans.vault)
    path = journal_file(plans.pai_dir, plans.env)
    door = Door(plans.pai_dir)
    journal = Journal(door, path, plans.vault.record, console.say)
    on_log = LogJournal(plans.env, door, path, plans.vault.record, console.say_masked)

    events = EventSender(plans.env, plans.pai_dir, plans.vault)

    def emit(event: dict[str, Any]) -> None:
        journal(event)
        is_failure = event["type"] == "task_end" and event["outcome"] == "failed"
        if is_failure or event["type"] == "phase_end":
            # Before the failure's text: the log's last 2 KiB are the termination message.
            on_log.show()
        console(event)
        events.observe(event)

    executor = _executor(plans, plan, emit)
    executor.begin()
    for record in settings_records(made, plans.vault):
        journal(record)
    if plans.meeting is not None:
        plans.meeting.begin(console.say)
    with executor.loop:
        outcome = executor.run_tasks()
        if outcome.event == "success":
            outcome = (
                hand_over(plans, volume, executor.shared.hidden) or executor.stopped() or outcome
            )
        if outcome.event == "signal" and (note := read_stop_note(Door(plans.pai_dir))):
            outcome = attrs.evolve(outcome, message=f"{outcome.message}: {note.words}")
        outcome = executor.run_handlers(outcome)
        if plans.meeting is not None:
            plans.meeting.end(stay=outcome.event == "success")
        executor.end(outcome)
    events.end()
    journal.close()
    return outcome.exit_code


def _executor(plans: PodPlans, plan: Plan, emit: Emit) -> Executor:
    shared = Shared(
        load=plan_loader(plan.modules),
        resolve=lambda late, results, env: _resolve(plans, late, results, env),
        emit=emit,
        vault=plans.vault,
        env=plans.env,
        pai_dir=plans.pai_dir,
        peers=lambda: _peers(plans),
    )
    return Executor(plan, shared)


def _peers(plans: PodPlans) -> JobPeers | None:
    """The other instances; None before the barrier has written their addresses."""
    if plans.meeting is None or not has_cluster(plans.pai_dir):
        return None
    with contextlib.suppress(PairunError, OSError):
        plans.meeting.note(plans.cluster())
    return plans.meeting.peers()


def _resolve(
    plans: PodPlans, late: Late, results: Mapping[str, Any], env: Mapping[str, str]
) -> Any:
    names: dict[str, Any] = {"results": results, "env": env}
    if _mentions(late, "cluster"):
        names["cluster"] = cluster_facts(plans.cluster())
    return resolve(late, names)


def _mentions(value: Any, name: str) -> bool:
    """Whether a late value, or a variable that it uses, contains a name."""
    if isinstance(value, Late):
        return name in value.template or _mentions(value.vars, name)
    if isinstance(value, Mapping):
        return any(_mentions(v, name) for v in value.values())
    return isinstance(value, list | tuple) and any(_mentions(v, name) for v in value)


MAX_VALUE = 500
"""The maximum length of a value in a record, in characters."""


def settings_records(plan: RolePlan, vault: Vault) -> Iterator[Record]:
    """A record for each task of both phases that is not disabled."""
    for phase, draft in plan.effective.drafts.items():
        for task in draft.tasks():
            if not task.disabled:
                origins = Origins(task, draft.vars, plan.job.parameters)
                given = [
                    source_data(path, setter, vault)
                    for path, setter in sources_of(origins)
                    if setter.layer not in ("built-in", "platform", task.origin)
                    and not setter.source.startswith("default")
                ]
                yield {
                    "type": "settings",
                    "phase": phase,
                    "task": task.id,
                    "layer": task.origin,
                    "where": str(task.place),
                    "set": [
                        *(_cut_values(override_data(*o, vault)) for o in overrides_of(task)),
                        *map(_cut_values, given),
                    ],
                }


def _cut_values(override: dict[str, Any]) -> dict[str, Any]:
    cut = {**override, "value": _cut(override["value"])}
    if was := override.get("was"):
        cut["was"] = {**was, "value": _cut(was["value"])}
    return cut


def _cut(value: Any) -> Any:
    """The value; if it is too long, the start of its text."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return value if len(text) <= MAX_VALUE else f"{text[: MAX_VALUE - 1]}…"
