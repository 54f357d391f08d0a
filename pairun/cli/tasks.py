"""``pairun tasks``: run the tasks or the exit handlers of a runtime plan, for PID 1.

PID 1 imports no module. It starts this process, and reads the part's result.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Mapping
from typing import Any, Literal

import attrs

from pairun.base.paths import journal_file
from pairun.base.signals import block_stop_signals
from pairun.contract.loading import plan_loader
from pairun.executor.output import pump_in_background
from pairun.executor.phase import DEFAULT_EXIT_CODE, Executor, PhaseOutcome
from pairun.executor.shared import Shared
from pairun.plan import USER_COMMAND, Late, Peers, Plan
from pairun.report.console import Console
from pairun.secrets.vault import Vault
from pairun.volume.door import Door
from pairun.volume.journal import Journal
from pairun.volume.planfile import read_plan

ANSWER_S = 0.05
"""Seconds of the handlers' time that are reserved for the answer to PID 1."""


_Part = Literal["tasks", "handlers"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("pai_dir", metavar="DIR", help="the shared volume")
    parser.add_argument("--part", choices=("tasks", "handlers"), required=True)
    parser.add_argument("--state-in", type=int, metavar="FD")
    parser.add_argument("--state-out", type=int, metavar="FD", required=True)


def run(args: argparse.Namespace) -> int:
    """Run one part of the runtime phase; writes its result to ``--state-out``."""
    run_part(args.pai_dir, args.part, args.state_in, args.state_out, args.vault)
    return 0


def run_part(
    pai_dir: str, part: _Part, question_fd: int | None, answer_fd: int, vault: Vault
) -> None:
    """Run the tasks or the exit handlers of the plan on a shared volume.

    Args:
        pai_dir: the shared volume.
        part: what to run.
        question_fd: contains PID 1's question to the exit handlers; unused for the tasks.
        answer_fd: a file for the part's result; it can be written several times.
        vault: takes every secret that is read.
    """
    block_stop_signals()
    plan = read_plan(pai_dir, vault)
    console = Console(sys.stdout, vault)
    env = dict(os.environ)
    door = Door(pai_dir)
    journal = Journal(door, journal_file(pai_dir, env), vault.record, console.say)
    steps = tuple(s for s in plan.steps if getattr(s, "module", None) != USER_COMMAND)

    def emit(event: dict[str, Any]) -> None:
        if part == "tasks" and event["type"] == "attempt_begin":
            answer.keep(executor)
        journal(event)
        console(event)

    shared = Shared(
        load=plan_loader(plan.modules, door),
        resolve=resolve_late,
        emit=emit,
        vault=vault,
        env=env,
        pai_dir=pai_dir,
        peers=lambda: _peers(pai_dir),
    )
    executor = Executor(attrs.evolve(plan, steps=steps), shared)
    answer = _Answer(answer_fd)
    if part == "tasks":
        shared.on_hide = lambda: answer.keep(executor)
    # Write the answer while signals are still handled: a late signal must not lose it.
    with executor.loop:
        if part == "tasks":
            executor.begin()
            answer.write(_answer_of(executor, executor.run_tasks()))
        else:
            assert question_fd is not None
            with open(question_fd, encoding="utf-8") as f:
                question = json.load(f)
            answer.write(_run_handlers(executor, plan, question))
    pump_in_background(executor.loop.lingering)


def _peers(pai_dir: str) -> Peers | None:
    """The other instances of the job; imported only for a task that needs them."""
    from pairun.rendezvous.peers import peers_of

    return peers_of(pai_dir, "runtime")


class _Answer:
    """The answer that PID 1 reads after this process has ended, even if it was killed.

    Args:
        fd: a file that can be written several times.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._kept = 0

    def keep(self, executor: Executor) -> None:
        """Write an answer in case this process is killed: PID 1 must undo what has begun."""
        shared = executor.shared
        if (size := len(shared.registered) + len(shared.hidden)) > self._kept:
            self._kept = size
            message = "the process that ran the tasks was killed"
            code = DEFAULT_EXIT_CODE["runtime"]
            outcome = PhaseOutcome(event="failure", exit_code=code, message=message)
            self.write(_answer_of(executor, outcome))

    def write(self, answer: dict[str, Any]) -> None:
        """Replace the answer."""
        data = json.dumps(answer).encode()
        os.pwrite(self._fd, data, 0)
        os.ftruncate(self._fd, len(data))


def resolve_late(late: Late, results: Mapping[str, Any], env: Mapping[str, str]) -> Any:
    """Resolve a late value; imports Jinja only if there is one."""
    from pairun.playbook.expressions.template import resolve

    return resolve(late, {"results": results, "env": env})


def _answer_of(executor: Executor, outcome: PhaseOutcome) -> dict[str, Any]:
    return {
        "outcome": outcome.event,
        "exit_code": outcome.exit_code,
        "script_code": outcome.script_code,
        "message": outcome.message,
        "registered": [h.id for h in executor.shared.registered],
        "results": executor.shared.results,
        "environment": executor.shared.exports,
        "secrets": executor.shared.hidden,
    }


def _run_handlers(executor: Executor, plan: Plan, question: Mapping[str, Any]) -> dict[str, Any]:
    state = question["state"]
    known = {h.id: h for t in plan.tasks() for h in t.on_exit}
    executor.shared.registered = [known[id_] for id_ in state["registered"]]
    executor.shared.results = dict(state["results"])
    executor.shared.export(state["environment"])
    executor.shared.vault.add(state.get("secrets", ()))
    event = question["event"]
    outcome = PhaseOutcome(
        event=event, exit_code=question["exit_code"], message=question["message"]
    )
    budget_s = question["deadline_s"]
    if budget_s is not None and "asked_at" in question:
        # The start of this process took some of the time.
        budget_s = max(0.0, budget_s - (time.monotonic() - question["asked_at"]) - ANSWER_S)
    after = executor.run_handlers(outcome, budget_s)
    return {
        "failed": after.failed is not None,
        "script_code": after.script_code,
        "message": after.message,
        "secrets": executor.shared.hidden,
    }
