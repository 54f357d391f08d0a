"""The executor: a plan becomes events and an outcome.

One thread, one selector loop. It never imports `pairun.playbook`: what could only be resolved late
is resolved by a function that it is given.
"""

from __future__ import annotations

import os
import random
import selectors
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import attrs

from pairun.errors import PairunError
from pairun.executor.attempt import TERM_WAIT_S, Attempt, Report
from pairun.executor.journal import Emit
from pairun.executor.output import OutputLines
from pairun.executor.plan import Event, Group, Late, Plan, Task
from pairun.module import FailureKind, Module, Secret, build, format_duration
from pairun.redaction import Redactor

MAX_DELAY_S = 300.0
MAX_RETRY_AFTER_S = 3600.0
HANDLER_DEADLINE_S = 300.0
DEFAULT_EXIT_CODE = {"init": 1, "runtime": 255}
"""Exit code of a phase whose failure is mapped by no ``exit_codes``; OpenPAI's values."""

Outcome = Literal["ok", "changed", "skipped", "ignored", "failed"]
Resolve = Callable[[Late, Mapping[str, Any], Mapping[str, str]], Any]
"""Resolves a late value from the results so far and the environment."""


@attrs.frozen(kw_only=True)
class PhaseOutcome:
    """How a phase ended.

    Attributes:
        event: success, failure or signal.
        exit_code: of the process that ran the phase.
        failed: id of the task that failed the phase, or None.
        message: why, in one sentence.
    """

    event: Event
    exit_code: int
    failed: str | None = None
    message: str = ""


def retry_delay(task: Task, attempts: int, retry_after_s: float | None = None) -> float:
    """Seconds to wait before the next attempt.

    Exponential with full jitter; what the other side asked for wins.

    Args:
        task: the task.
        attempts: how many it has made, one at least.
        retry_after_s: what the other side asked for.
    """
    if retry_after_s is not None:
        return max(0.0, min(retry_after_s, MAX_RETRY_AFTER_S))
    # The exponent is bounded, because a float is.
    longest = min(MAX_DELAY_S, task.delay_s * 2.0 ** min(attempts - 1, 64))
    return random.uniform(0, longest)  # noqa: S311 - jitter


@attrs.define(kw_only=True)
class _Run:
    """A task on its way through its attempts."""

    task: Task
    handler: bool
    started: float
    deadline: float | None
    module: Module | None = None
    env: Mapping[str, str] = attrs.Factory(dict)
    attempts: int = 0
    attempt: Attempt | None = None
    lines: OutputLines | None = None
    kill_after_s: float = TERM_WAIT_S
    resume_at: float | None = None
    ended: float = 0.0
    outcome: Outcome | None = None
    report: Report = attrs.Factory(dict)

    @property
    def of(self) -> int:
        return self.task.retries + 1

    def bound(self) -> None:
        """Set the limit of the attempt that runs, by all that bounds it."""
        assert self.attempt is not None
        limits = [self.deadline]
        if self.task.timeout_s is not None:
            limits.append(self.attempt.started + self.task.timeout_s)
        limit = min((x for x in limits if x is not None), default=None)
        if self.handler and limit is not None:
            # A handler's share includes the time it takes to stop it.
            self.kill_after_s = min(1.0, 0.2 * max(0.0, limit - time.monotonic()))
            limit -= self.kill_after_s
        self.attempt.deadline = limit


class Executor:
    """Runs the steps of a plan, and the exit handlers that they registered.

    Args:
        plan: what to run.
        load: module name to class.
        resolve: resolves late values.
        emit: takes every event (`pairun.executor.journal` lists them, and ``output``).
        redactor: what no event may hold.
        env: the environment of the tasks; exports of tasks are merged into it.
        pai_dir: the shared volume.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        load: Callable[[str], type[Module]],
        resolve: Resolve,
        emit: Emit,
        redactor: Redactor,
        env: dict[str, str],
        pai_dir: str,
    ) -> None:
        self.plan = plan
        self.env = env
        self.exports: dict[str, str | None] = {}
        self.results: dict[str, dict[str, Any]] = {}
        self.registered: list[Task] = []
        self.signal: int | None = None
        self.lingering: list[tuple[int, OutputLines]] = []
        self._load = load
        self._resolve = resolve
        self._emit = emit
        self._redactor = redactor
        self._pai_dir = pai_dir
        self._handling = False
        self._signals = _Signals()

    def __enter__(self) -> Executor:
        """Take over the process's signals: from here on TERM, INT and HUP stop the phase."""
        self._signals.install()
        return self

    def __exit__(self, *exc: object) -> None:
        """Give the signals back."""
        self._signals.restore()

    # --- the two halves of a phase ---

    def run_tasks(self) -> PhaseOutcome:
        """Run the steps in order until one fails or a signal comes."""
        for step in self.plan.steps:
            tasks = step.tasks if isinstance(step, Group) else (step,)
            runs = self._run_together(tasks)
            # Of a group, the one that failed first: the others were cancelled because of it.
            failures = [r for r in runs if r.outcome == "failed"]
            failed = min(failures, key=lambda r: r.ended, default=None)
            if self.signal is not None:
                return self._stopped_by_signal()
            if failed is not None:
                return PhaseOutcome(
                    event="failure",
                    exit_code=self._exit_code(failed),
                    failed=failed.task.id,
                    message=f"{failed.task.id}: {failed.report['message']}",
                )
        return PhaseOutcome(event="success", exit_code=0)

    def run_handlers(self, outcome: PhaseOutcome, budget_s: float | None) -> PhaseOutcome:
        """Run the exit handlers for an outcome, last registered first.

        Args:
            outcome: how the tasks (or the user's command) ended.
            budget_s: seconds for all handlers together, or None when only their own limits bound
                them; each has its share of what is left.

        Returns:
            The outcome, turned into a failure when a handler that may fail the phase failed.
        """
        waiting = [h for h in reversed(self.registered) if outcome.event in h.events]
        if not waiting:
            return outcome
        self._handling = True
        self._emit({"type": "handlers_begin", "event": outcome.event, "count": len(waiting)})
        end = None if budget_s is None else time.monotonic() + budget_s
        for left in range(len(waiting), 0, -1):
            handler = waiting[len(waiting) - left]
            if self.signal is not None and end is None:
                end = time.monotonic() + self.plan.grace_s
            share = HANDLER_DEADLINE_S if end is None else max(0.0, end - time.monotonic()) / left
            if handler.deadline_s is not None:
                share = min(share, handler.deadline_s)
            run = self._run_together((attrs.evolve(handler, deadline_s=share),), handler=True)[0]
            if run.outcome == "failed" and outcome.event == "success":
                outcome = PhaseOutcome(
                    event="failure",
                    exit_code=self._exit_code(run),
                    failed=handler.id,
                    message=f"exit handler {handler.id}: {run.report['message']}",
                )
        if self.signal is not None and outcome.event == "success":
            return self._stopped_by_signal()
        return outcome

    def _stopped_by_signal(self) -> PhaseOutcome:
        assert self.signal is not None
        name = signal.Signals(self.signal).name
        return PhaseOutcome(
            event="signal", exit_code=128 + self.signal, message=f"stopped by {name}"
        )

    def _exit_code(self, run: _Run) -> int:
        return run.task.exit_codes.get(run.report["kind"], DEFAULT_EXIT_CODE[self.plan.phase])

    # --- the loop ---

    def _run_together(self, tasks: Sequence[Task], *, handler: bool = False) -> list[_Run]:
        now = time.monotonic()
        runs = [
            _Run(
                task=t,
                handler=handler,
                started=now,
                deadline=None if t.deadline_s is None else now + t.deadline_s,
            )
            for t in tasks
        ]
        for run in runs:
            self._begin(run)
        while any(r.outcome is None for r in runs):
            self._turn(runs)
        return runs

    def _turn(self, runs: list[_Run]) -> None:
        """Wait for the next thing to happen, and let it happen."""
        busy = [r for r in runs if r.outcome is None]
        for run in busy:
            if run.resume_at is not None and run.resume_at <= time.monotonic():
                self._attempt(run)
        with selectors.DefaultSelector() as selector:
            selector.register(self._signals.fd, selectors.EVENT_READ)
            sources = {r.lines.fd: r.lines for r in busy if r.attempt and r.lines and r.lines.open}
            sources |= {fd: lines for fd, lines in self.lingering}
            for fd, lines in sources.items():
                selector.register(fd, selectors.EVENT_READ, lines)
            for run in busy:
                if run.attempt:
                    selector.register(run.attempt.result_fd, selectors.EVENT_READ, run.attempt)
            for key, _ in selector.select(self._next_timer(busy)):
                if isinstance(key.data, OutputLines):
                    self._read_output(key.data)
                elif isinstance(key.data, Attempt):
                    key.data.read_report()
        for number in self._signals.take():
            self._on_signal(number, busy)
        for run in busy:
            self._check_limits(run)
            if run.attempt and (report := run.attempt.ended()) is not None:
                self._attempt_ended(run, report)
        if any(r.outcome == "failed" for r in runs):
            for run in runs:
                if run.outcome is None:
                    self._cancel(run, "another task of its group failed")

    def _read_output(self, lines: OutputLines) -> None:
        if lines.read():
            self.lingering = [(fd, held) for fd, held in self.lingering if held is not lines]

    def _next_timer(self, busy: list[_Run]) -> float | None:
        times = []
        for run in busy:
            if run.attempt is None:
                times.append(run.resume_at)
            elif run.attempt.kill_at is not None:
                times.append(run.attempt.kill_at)
            else:
                times.append(run.attempt.deadline)
        known = [t for t in times if t is not None]
        # A child that ends between two looks at it wakes the loop through SIGCHLD.
        return max(0.0, min(known) - time.monotonic()) if known else None

    def _on_signal(self, number: int, busy: list[_Run]) -> None:
        if number not in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP) or self.signal is not None:
            return
        self.signal = number
        if self._handling:
            return
        for run in busy:
            self._cancel(run, f"stopped by {signal.Signals(number).name}")

    def _cancel(self, run: _Run, why: str) -> None:
        if run.attempt is not None:
            # Of the grace time, what is stopped has a quarter; the rest is the handlers'.
            run.attempt.stop(why, min(5.0, self.plan.grace_s / 4))
        elif run.outcome is None:
            self._end(run, "failed", {"kind": "transient", "fault": "unknown", "message": why})

    def _check_limits(self, run: _Run) -> None:
        attempt, now = run.attempt, time.monotonic()
        if attempt is None:
            return
        if attempt.kill_at is not None and now >= attempt.kill_at:
            attempt.signal(signal.SIGKILL)
            attempt.kill_at = None
        elif attempt.stopping is None and attempt.deadline is not None and now >= attempt.deadline:
            attempt.stop("timeout", run.kill_after_s)

    # --- one task ---

    def _begin(self, run: _Run) -> None:
        task = run.task
        if self.signal is not None and not run.handler:
            self._end(
                run, "failed", {"kind": "transient", "fault": "unknown", "message": "stopped"}
            )
            return
        try:
            if not self._resolved(task.when):
                self._end(run, "skipped", {"message": "its condition is false"})
                return
            values = self._resolved(task.args)
            added = self._resolved(task.environment)
            module, problems = build(self._load(task.module), values)
        except PairunError as e:
            # What only the run could tell does not fit: bad input, found late.
            self._end(run, "failed", _late_problem(e))
            return
        if module is None:
            message = "; ".join(p.message for p in problems)
            self._end(run, "failed", {"kind": "permanent", "fault": "user", "message": message})
            return
        run.module = module
        run.env = {**self.env, **{k: _text(v) for k, v in added.items()}}
        # What a first attempt half did must be undone too, so its handlers count from here.
        self.registered += task.on_exit
        self._attempt(run)

    def _resolved(self, value: Any) -> Any:  # noqa: ANN401 - plain data
        if isinstance(value, Late):
            return self._resolve(value, self.results, self.env)
        if isinstance(value, Mapping):
            return {k: self._resolved(v) for k, v in value.items()}
        if isinstance(value, list | tuple):
            return [self._resolved(v) for v in value]
        return value

    def _attempt(self, run: _Run) -> None:
        assert run.module is not None
        run.attempts += 1
        run.resume_at = None
        limits = [run.deadline]
        if run.task.timeout_s is not None:
            limits.append(time.monotonic() + run.task.timeout_s)
        deadline = min((x for x in limits if x is not None), default=None)
        if run.handler and deadline is not None:
            # A handler's share includes the time it takes to stop it.
            run.kill_after_s = min(1.0, 0.2 * max(0.0, deadline - time.monotonic()))
            deadline -= run.kill_after_s
        self._emit(
            {
                "type": "attempt_begin", "task": run.task.id, "name": run.task.name,
                "module": run.task.module, "attempt": run.attempts, "of": run.of,
                "handler": run.handler,
            }
        )  # fmt: skip
        run.attempt = Attempt(run.module, run.env, self._pai_dir, deadline)
        run.lines = OutputLines(run.attempt.output_fd, run.task.id, self._redactor, self._emit)

    def _attempt_ended(self, run: _Run, report: Report) -> None:
        attempt, lines = run.attempt, run.lines
        assert attempt is not None
        assert lines is not None
        run.attempt = None
        if not lines.read():
            # Something in the background still holds the pipe; it is read on, never broken.
            self.lingering.append((lines.fd, lines))
        if attempt.stopping == "timeout":
            limit = time.monotonic() - attempt.started
            report = {
                "outcome": "failed",
                "kind": "timeout",
                "fault": "unknown",
                "message": f"attempt {run.attempts} of {run.of} was stopped after "
                f"{format_duration(limit)}",
            }
        elif attempt.stopping is not None:
            report = {
                "outcome": "failed", "kind": "transient", "fault": "unknown",
                "message": attempt.stopping,
            }  # fmt: skip
        record = {
            "type": "attempt_end", "task": run.task.id, "attempt": run.attempts, "of": run.of,
            "seconds": round(time.monotonic() - attempt.started, 4), "outcome": report["outcome"],
        }  # fmt: skip
        if report["outcome"] == "failed":
            record |= {k: report.get(k) for k in ("kind", "fault", "message", "hint", "trace")}
            record["output"] = lines.tail()
        self._emit(record)
        if report["outcome"] != "failed":
            self._end(run, report["outcome"], report)
        elif attempt.stopping not in (None, "timeout") or not self._try_again(run, report):
            self._end(run, "failed", report)

    def _try_again(self, run: _Run, report: Report) -> bool:
        kind: FailureKind = report["kind"]
        if run.attempts >= run.of or kind not in run.task.retry_on or self._must_end(run):
            return False
        asked = report.get("retry_after_s")
        delay = (
            min(asked, MAX_RETRY_AFTER_S)
            if asked is not None
            else random.uniform(0, min(MAX_DELAY_S, run.task.delay_s * 2 ** (run.attempts - 1)))  # noqa: S311 - jitter
        )
        resume_at = time.monotonic() + delay
        if run.deadline is not None and resume_at >= run.deadline:
            report["message"] += (
                f" (no further attempt: the next would begin after the task's deadline of "
                f"{format_duration(run.task.deadline_s or 0)})"
            )
            return False
        run.resume_at = resume_at
        self._emit(
            {
                "type": "wait", "task": run.task.id, "seconds": round(delay, 3),
                "because": f"attempt {run.attempts} of {run.of} failed ({kind}): "
                f"{report['message']}",
            }
        )  # fmt: skip
        return True

    def _must_end(self, run: _Run) -> bool:
        return self.signal is not None and not run.handler

    def _end(self, run: _Run, outcome: Outcome, report: Report) -> None:
        task = run.task
        if outcome == "failed" and task.failure_policy == "ignore" and not self._must_end(run):
            outcome = "ignored"
        run.outcome = outcome
        run.report = report
        run.ended = time.monotonic()
        values = report.get("values", {})
        self.results[task.id] = {
            "outcome": outcome,
            "changed": outcome == "changed",
            "message": report.get("message", ""),
            "values": values,
        }
        for name, value in report.get("environment", {}).items():
            self.exports[name] = value
            if value is None:
                self.env.pop(name, None)
            else:
                self.env[name] = value
        record: dict[str, Any] = {
            "type": "task_end", "task": task.id, "name": task.name, "outcome": outcome,
            "attempts": run.attempts, "seconds": round(time.monotonic() - run.started, 4),
            "message": report.get("message", ""), "handler": run.handler,
        }  # fmt: skip
        if outcome in ("failed", "ignored"):
            record |= {k: report.get(k) for k in ("kind", "fault", "hint")}
        self._emit(record)


def _text(value: object) -> str:
    if isinstance(value, Secret):
        return value.reveal()
    return str(value).lower() if isinstance(value, bool) else str(value)


def _late_problem(error: PairunError) -> Report:
    first = error.problems[0]
    internal = first.id in ("PR602", "PR603", "PR703")
    return {
        "kind": "internal" if internal else "permanent",
        "fault": "platform" if internal else "user",
        "message": f"[{first.id}] {first.message}",
        "hint": first.hint,
    }
