"""Thousands of small plans with attempts that are played, and what holds for each of them."""

from __future__ import annotations

import itertools
import os
import random
import signal
from collections.abc import Iterator
from typing import Any, get_args

import pytest

from pairun.contract.results import Report, checked, failure
from pairun.errors import PairunError, Problem
from pairun.executor.phase import DEFAULT_EXIT_CODE, Executor, PhaseOutcome
from pairun.executor.shared import Shared
from pairun.module import CheckModule, FailureKind, Module, define
from pairun.plan import DEFAULT_RETRY_ON, EVENTS, Event, Group, Late, Plan, Step, Task
from pairun.secrets.vault import Vault
from tests.effort import cases

PLANS = cases(2500)
KINDS = get_args(FailureKind)
OUTCOMES = ("ok", "changed", "skipped", *KINDS, "hangs", "interrupted", "unstartable")


@define
class Play(CheckModule):
    """What an attempt of the simulation is given."""


class PlayedAttempt:
    """An attempt that ends as the script says, at once or when it is stopped."""

    script: dict[str, Iterator[str]]
    now: str = ""
    alive = 0

    def __init__(
        self, _module: Module, _env: Any, _pai_dir: str, deadline: float | None, *_on: Any
    ) -> None:
        self.what = next(self.script[self.now])
        if self.what == "unstartable":
            raise OSError(11, "no more processes")
        PlayedAttempt.alive += 1
        self.started, self.deadline = 0.0, deadline
        self.reporting = True
        self.result_fd, end = os.pipe()
        os.close(end)  # readable at once, as that of a real attempt when it has ended
        self.output_fd, end = os.pipe()
        os.close(end)
        os.set_blocking(self.output_fd, False)
        self.stopping: str | None = None

    def take_secrets(self) -> None:
        """There are none."""

    def read_report(self) -> None:
        """There is nothing to read."""
        if self.what == "interrupted":
            signal.raise_signal(signal.SIGTERM)
            self.what = "hangs"
        self.reporting = False

    def stop(self, why: str, _kill_after_s: float = 0.0) -> None:
        """Stop at once."""
        self.stopping = self.stopping or why

    def wake_at(self) -> float | None:
        """Whenever the executor likes."""
        return 0.0

    def check_time(self, kill_after_s: float) -> None:
        """What hangs is stopped by its limit."""
        if self.what == "hangs" and self.deadline is not None:
            self.stop("timeout", kill_after_s)

    def ended(self) -> Report | None:
        """The end that the script tells."""
        if self.reporting or (self.what == "hangs" and self.stopping is None):
            return None
        os.close(self.result_fd)
        PlayedAttempt.alive -= 1
        if self.stopping is not None:
            return failure("stopped", "timeout" if self.stopping == "timeout" else "transient")
        if self.what in KINDS:
            kind: Any = self.what
            return failure("x", kind, "user")
        return checked(Report, {"outcome": self.what, "message": "x"})


# --- plans ------------------------------------------------------------------------------------------


class Dice:
    """Makes plans of any shape; the same number makes the same plan."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._count = itertools.count()
        self.scripts: dict[str, list[str]] = {}

    def plan(self) -> Plan:
        """A plan, and in `scripts` for every task how its attempts end."""
        steps = tuple(self._step() for _ in range(self._random.randint(0, 4)))
        phase: Any = self._random.choice(["init", "runtime"])
        return Plan(phase=phase, steps=steps, modules={})

    def _step(self) -> Step:
        if self._random.random() < 0.5:
            return self._task()
        return Group(name="g", tasks=tuple(self._task() for _ in range(self._random.randint(1, 3))))

    def _task(self, *, handler: bool = False) -> Task:
        pick, one_of = self._random.random, self._random.choice
        late = Late(template="bad", because="x")
        name = f"{'h' if handler else 't'}{next(self._count)}"
        self.scripts[name] = [
            one_of(OUTCOMES) if pick() < 0.6 else "ok" for _ in range(self._random.randint(1, 4))
        ]
        undo = () if handler else tuple(
            self._task(handler=True) for _ in range(self._random.randint(0, 2))
        )  # fmt: skip
        return Task(
            id=name,
            name=name,
            module="play",
            args={} if pick() < 0.9 else one_of([{"no_such": 1}, {"late": late}]),
            when=True if pick() < 0.8 else one_of([False, late]),
            retries=self._random.randint(0, 3),
            delay_s=0.0,
            retry_on=one_of([DEFAULT_RETRY_ON, (), ("permanent",)]),
            timeout_s=0.5,
            failure_policy=one_of(["fail", "ignore"]),
            exit_codes={k: self._random.randint(2, 250) for k in KINDS if pick() < 0.2},
            on_exit=undo,
            events=tuple(e for e in EVENTS if pick() < 0.6) if handler else (),
        )


def play(plan: Plan, scripts: dict[str, list[str]]) -> tuple[Executor, PhaseOutcome, list[Any]]:
    """Run a plan with played attempts."""
    events: list[dict[str, Any]] = []
    PlayedAttempt.script = {k: itertools.cycle(v) for k, v in scripts.items()}

    def emit(event: dict[str, Any]) -> None:
        events.append(event)
        if event["type"] == "attempt_begin":
            PlayedAttempt.now = event["task"]

    def refuse(*_: Any) -> Any:
        raise PairunError(Problem("PR301", "no such thing"))

    shared = Shared(
        load=lambda _: Play,
        resolve=refuse,
        emit=emit,
        vault=Vault(),
        env={},
        pai_dir="/nowhere",
    )
    executor = Executor(plan, shared)
    with executor.loop:
        outcome = executor.run_handlers(executor.run_tasks(), 30.0)
    return executor, outcome, events


@pytest.mark.parametrize("chunk", range(4))
def test_what_holds_for_every_plan(monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    """Begins and ends pair up, attempts are bounded, handlers are reversed, the outcome is one."""
    monkeypatch.setattr("pairun.executor.loop.AttemptProcess", PlayedAttempt)
    seen = set()
    for seed in range(chunk * PLANS, (chunk + 1) * PLANS):
        dice = Dice(seed)
        plan = dice.plan()
        executor, outcome, events = play(plan, dice.scripts)
        known = {t.id: t for t in plan.tasks()} | {h.id: h for t in plan.tasks() for h in t.on_exit}
        try:
            assert PlayedAttempt.alive == 0
            _check_attempts(events, known)
            _check_order(plan, events)
            _check_handlers(executor, outcome, events)
            _check_outcome(plan, executor, outcome, events, known)
        except AssertionError as e:
            raise AssertionError(f"the plan of seed {seed}: {plan}\n{events}") from e
        seen |= {outcome.event} | {e["outcome"] for e in events if e["type"] == "task_end"}
    # the dice do throw everything
    assert seen == {*EVENTS, "ok", "changed", "skipped", "ignored", "failed"}


def _check_attempts(events: list[Any], known: dict[str, Task]) -> None:
    begins = [(e["task"], e["attempt"]) for e in events if e["type"] == "attempt_begin"]
    ends = [(e["task"], e["attempt"]) for e in events if e["type"] == "attempt_end"]
    assert sorted(begins) == sorted(ends)
    assert len(set(begins)) == len(begins)
    tasks_ended = [e["task"] for e in events if e["type"] == "task_end"]
    assert len(set(tasks_ended)) == len(tasks_ended)
    for end in (e for e in events if e["type"] == "task_end"):
        task = known[end["task"]]
        numbers = [n for name, n in begins if name == task.id]
        assert numbers == list(range(1, end["attempts"] + 1))
        assert end["attempts"] <= task.retries + 1
        if end["outcome"] == "skipped" and not numbers:
            assert task.when is False
    for wait in (e for e in events if e["type"] == "wait"):
        assert wait["task"] in tasks_ended


def _check_order(plan: Plan, events: list[Any]) -> None:
    """Steps follow one another: none begins before the one before it has ended."""
    step_of = {
        t.id: n
        for n, s in enumerate(plan.steps)
        for t in (s.tasks if isinstance(s, Group) else (s,))
    }
    seen = [step_of[e["task"]] for e in events if e.get("task") in step_of]
    assert seen == sorted(seen)


def _check_handlers(executor: Executor, outcome: PhaseOutcome, events: list[Any]) -> None:
    begun = {e["task"] for e in events if e["type"] == "attempt_begin"}
    tasks_begun = [e["task"] for e in events if e["type"] == "attempt_begin" and e["attempt"] == 1
                   and not e["handler"]]  # fmt: skip
    expected = [
        h.id for name in tasks_begun for t in executor.plan.tasks() if t.id == name
        for h in t.on_exit
    ]  # fmt: skip
    assert [h.id for h in executor.shared.registered] == expected
    headers = [e["event"] for e in events if e["type"] == "handlers_begin"]
    ran = [e["task"] for e in events if e["type"] == "task_end" and e["handler"]]
    assert len(headers) <= 1
    if headers:
        wanted = [h.id for h in reversed(executor.shared.registered) if headers[0] in h.events]
        assert ran == wanted
        assert headers[0] == outcome.event or outcome.event in ("failure", "signal")
    else:
        assert ran == []
        assert not [h for h in executor.shared.registered if outcome.event in h.events]
    assert begun >= set(tasks_begun)


def _check_outcome(
    plan: Plan,
    executor: Executor,
    outcome: PhaseOutcome,
    events: list[Any],
    known: dict[str, Task],
) -> None:
    events_of_phase: tuple[Event, ...] = EVENTS
    assert outcome.event in events_of_phase
    assert (outcome.exit_code == 0) == (outcome.event == "success")
    failed = [e for e in events if e["type"] == "task_end" and e["outcome"] == "failed"]
    if outcome.event == "signal":
        assert (executor.shared.stop_signal, outcome.exit_code) == (signal.SIGTERM, 143)
    elif outcome.event == "failure":
        (end,) = [e for e in failed if e["task"] == outcome.failed]
        codes = known[end["task"]].exit_codes
        assert outcome.exit_code == codes.get(end["kind"], DEFAULT_EXIT_CODE[plan.phase])
        own = [e for e in failed if e["handler"] == end["handler"]]
        assert own[0] is end
    else:
        assert not failed
        assert executor.shared.stop_signal is None
        assert {e["task"] for e in events if e["type"] == "task_end" and not e["handler"]} == {
            t.id for t in plan.tasks()
        }
