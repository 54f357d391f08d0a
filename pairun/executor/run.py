"""The executor: a plan becomes events and an outcome.

One thread, one selector loop. It never imports `pairun.playbook`: what could only be resolved late
is resolved by a function that it is given.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import select
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Self

import attrs

from pairun.base.journal import Emit
from pairun.base.signals import Signals
from pairun.contract.arguments import build
from pairun.contract.results import BadResult, Progress, Report, checked_variable, failure
from pairun.errors import PairunError, Problem
from pairun.executor.attempt import TERM_WAIT_S, Attempt
from pairun.executor.child import described, trace_of
from pairun.executor.output import OutputLines
from pairun.executor.peers import (
    TELL_S,
    VERDICT_S,
    Awaiting,
    Telling,
    adopted,
    verdict_of,
)
from pairun.module import FAILURE_KINDS, FailureKind, Module, Secret, format_duration
from pairun.plan import Event, Group, Late, Peers, Plan, Task
from pairun.secrets.vault import Vault

MAX_DELAY_S = 300.0
MAX_RETRY_AFTER_S = 3600.0
HANDLER_DEADLINE_S = 300.0
MAX_TOLD = 4096
"""The longest message, in characters, that exit handlers find in a variable."""
GRACE_SHARE = 0.8
"""After this part of the grace time the exit handlers are over, and we end."""

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


def retry_delay(
    task: Task, attempts: int, retry_after_s: float | None = None, left_s: float | None = None
) -> float:
    """Seconds to wait before the next attempt.

    Exponential with full jitter. What the other side asked for is the least; the jitter comes on
    top, because ten thousand Pods were told the same number of seconds.

    Args:
        task: the task.
        attempts: how many it has made, one at least.
        retry_after_s: what the other side asked for.
        left_s: what is left until the task's deadline; the jitter alone never uses that up.
    """
    # Imported where it is used: it would draw a new seed in every forked child.
    import random

    # The exponent is bounded, because a float is.
    longest = min(MAX_DELAY_S, task.delay_s * 2.0 ** min(attempts - 1, 64))
    if retry_after_s is None:
        return random.uniform(0, longest)  # noqa: S311 - jitter
    least = max(0.0, min(retry_after_s, MAX_RETRY_AFTER_S))
    # Also where the task's own delay is short: half of the wait, which is what the server thinks
    # it needs.
    spread = max(longest, min(least / 2, MAX_DELAY_S))
    if left_s is not None and least < left_s:
        spread = min(spread, (left_s - least) / 2)
    return least + random.uniform(0, spread)  # noqa: S311 - jitter


@attrs.define(kw_only=True)
class _Run:
    """A task on its way through its attempts."""

    task: Task
    handler: bool
    started: float
    deadline: float | None = None
    module: Module | None = None
    harmless: frozenset[FailureKind] = frozenset()
    env: Mapping[str, str] = attrs.Factory(dict)
    attempts: int = 0
    attempt: Attempt | None = None
    lines: OutputLines | None = None
    kill_after_s: float = TERM_WAIT_S
    resume_at: float | None = None
    cancelled: bool = False
    awaiting: str | None = None
    told: tuple[Outcome, Report] | None = None
    ended: float = 0.0
    outcome: Outcome | None = None
    report: Report = attrs.Factory(lambda: Report(outcome="ok"))

    @property
    def of(self) -> int:
        return self.task.retries + 1

    def limit(self, began: float) -> float | None:
        """The time at which an attempt that began then must be stopped, by all that bounds it."""
        limits = [self.deadline]
        if self.task.timeout_s is not None:
            limits.append(began + self.task.timeout_s)
        limit = min((x for x in limits if x is not None), default=None)
        if self.handler and limit is not None:
            # A handler's share includes the time it takes to stop it.
            self.kill_after_s = min(1.0, 0.2 * max(0.0, limit - time.monotonic()))
            limit -= self.kill_after_s
        return limit


class Executor:
    """Runs the steps of a plan, and the exit handlers that they registered.

    Args:
        plan: what to run.
        load: module name to class.
        resolve: resolves late values.
        emit: takes every event (`pairun.base.journal` lists them, and ``output``).
        vault: what no event may hold.
        env: the environment of the tasks; exports of tasks are merged into it.
        pai_dir: the shared volume.
        peers: the other instances of the job, or None where each runs everything itself.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        load: Callable[[str], type[Module]],
        resolve: Resolve,
        emit: Emit,
        vault: Vault,
        env: dict[str, str],
        pai_dir: str,
        peers: Callable[[], Peers | None] = lambda: None,
    ) -> None:
        self.plan = plan
        self.env = env
        self.exports: dict[str, str | None] = {}
        self.results: dict[str, dict[str, Any]] = {}
        self.registered: list[Task] = []
        self.signal: int | None = None
        self.lingering: list[OutputLines] = []
        self._load = load
        self._resolve = resolve
        self._emit = emit
        self._vault = vault
        self._pai_dir = pai_dir
        self._peers = peers
        self._signals = Signals()
        self._end_of_grace: float | None = None
        self._handlers_left = 0
        self._end_of_handlers: float | None = None

    def __enter__(self) -> Self:
        """Take over the process's signals: from here on TERM, INT and HUP stop the phase."""
        self._signals.install()
        # A collection would touch, and so copy, every page that a forked child shares with us.
        gc.freeze()
        return self

    def __exit__(self, *exc: object) -> None:
        """Give the signals back."""
        gc.unfreeze()
        self._signals.restore()

    # --- the two halves of a phase ---

    def run_tasks(self) -> PhaseOutcome:
        """Run the steps in order until one fails or a signal comes."""
        for step in self.plan.steps:
            if stopped := self.stopped():
                return stopped
            runs = self._run_together(step.tasks if isinstance(step, Group) else (step,))
            # Of a group, the one that failed first: the others were cancelled because of it.
            failures = [r for r in runs if r.outcome == "failed"]
            failed = min(failures, key=lambda r: r.ended, default=None)
            if failed is not None and self.signal is None:
                return PhaseOutcome(
                    event="failure",
                    exit_code=self._exit_code(failed),
                    failed=failed.task.id,
                    message=f"{failed.task.id}: {failed.report.message}",
                )
        return self.stopped() or PhaseOutcome(event="success", exit_code=0)

    def run_handlers(self, outcome: PhaseOutcome, budget_s: float | None = None) -> PhaseOutcome:
        """Run the exit handlers for an outcome, last registered first.

        Args:
            outcome: how the tasks (or the user's command) ended.
            budget_s: seconds for all handlers together, or None when only their own limits and
                the grace time bound them; each has its share of what is left.

        Returns:
            The outcome, turned into a failure when a handler that may fail the phase failed.
        """
        waiting = [h for h in reversed(self.registered) if outcome.event in h.events]
        self.env |= self._told_to_handlers(outcome)
        if waiting:
            count = len(waiting)
            self._emit({"type": "handlers_begin", "event": outcome.event, "count": count})
        now = time.monotonic()
        ends = [self._end_of_grace, None if budget_s is None else now + budget_s]
        self._end_of_handlers = min((x for x in ends if x is not None), default=None)
        for left, handler in zip(range(len(waiting), 0, -1), waiting, strict=True):
            self._handlers_left = left
            run = self._run_together((handler,), handler=True)[0]
            if run.outcome == "failed" and outcome.event == "success":
                outcome = PhaseOutcome(
                    event="failure",
                    exit_code=self._exit_code(run),
                    failed=handler.id,
                    message=f"exit handler {handler.id}: {run.report.message}",
                )
        return (outcome.event == "success" and self.stopped()) or outcome

    def _told_to_handlers(self, outcome: PhaseOutcome) -> dict[str, str]:
        """The variables in which exit handlers find how the phase ended."""
        message = self._vault.text(outcome.message).replace("\0", "")
        return {
            "PAIRUN_EVENT": outcome.event,
            "PAIRUN_EXIT_CODE": str(outcome.exit_code),
            "PAIRUN_MESSAGE": message[:MAX_TOLD],
        }

    def stopped(self) -> PhaseOutcome | None:
        """The outcome when a stop signal has come up to now, else None."""
        self._take_signals(())
        if self.signal is None:
            return None
        name = signal.Signals(self.signal).name
        return PhaseOutcome(
            event="signal", exit_code=128 + self.signal, message=f"stopped by {name}"
        )

    def _exit_code(self, run: _Run) -> int:
        return run.task.exit_codes.get(run.report.kind, DEFAULT_EXIT_CODE[self.plan.phase])

    # --- the loop ---

    def _run_together(self, tasks: Sequence[Task], *, handler: bool = False) -> list[_Run]:
        runs = [_Run(task=t, handler=handler, started=time.monotonic()) for t in tasks]
        for run in runs:
            own = run.task.deadline_s
            # What a handler may take where neither its author nor a grace time says it.
            shared = handler and (own is None or self._end_of_handlers is not None)
            limits = [own, self._share_s() if shared else None]
            limit = min((x for x in limits if x is not None), default=None)
            run.deadline = None if limit is None else run.started + limit
            self._begin(run)
        while any(r.outcome is None for r in runs):
            self._turn(runs)
        return runs

    def _turn(self, runs: list[_Run]) -> None:
        """Wait for the next thing to happen, and let it happen."""
        for run in runs:
            if run.resume_at is not None and run.resume_at <= time.monotonic():
                self._attempt(run)
        if any(r.outcome == "failed" for r in runs):
            for run in runs:
                self._cancel(run, "another task of its group failed")
        busy = [r for r in runs if r.outcome is None]
        if busy:
            self._wait(busy)
            self._take_signals(busy)
        for run in busy:
            if run.attempt is not None:
                run.attempt.check_time(run.kill_after_s)
                if (report := run.attempt.ended()) is not None:
                    self._attempt_ended(run, run.attempt, report)

    def _wait(self, busy: list[_Run]) -> None:
        """Wait for a signal, for the next limit, or for something to read; read it."""
        readers: dict[int, Callable[[], None]] = {x.fd: x.read for x in self.lingering}
        wake_at = []
        for run in busy:
            if run.attempt is None:
                wake_at.append(run.resume_at)
                continue
            wake_at.append(run.attempt.wake_at())
            if run.attempt.reporting:
                readers[run.attempt.result_fd] = run.attempt.read_report
            if run.lines is not None and run.lines.open:
                readers[run.lines.fd] = run.lines.read
        poll = select.poll()
        poll.register(self._signals.fd, select.POLLIN)
        for fd in readers:
            poll.register(fd, select.POLLIN)
        limit = min((x for x in wake_at if x is not None), default=None)
        # A child that ends between two looks at it wakes us through SIGCHLD.
        wait_ms = None if limit is None else max(0.0, limit - time.monotonic()) * 1000
        for fd, _ in poll.poll(wait_ms):
            if fd in readers:
                readers[fd]()
        self.lingering = [x for x in self.lingering if x.open]

    def _take_signals(self, busy: Sequence[_Run]) -> None:
        numbers = self._signals.take_stops()
        if not numbers or self.signal is not None:
            return
        self.signal = numbers[0]
        self._end_of_grace = time.monotonic() + GRACE_SHARE * self.plan.grace_s
        for run in busy:
            if run.handler:
                self._hurry(run)
            else:
                self._cancel(run, f"stopped by {signal.Signals(self.signal).name}")

    def _cancel(self, run: _Run, why: str) -> None:
        run.cancelled = True
        if run.told is not None and self.signal is None:
            return  # it has ended, and others are being told
        if run.attempt is not None:
            # Of the grace time, what is stopped has a quarter; the rest is the handlers'.
            run.attempt.stop(why, min(TERM_WAIT_S, self.plan.grace_s / 4))
        elif run.outcome is None:
            if last := run.report.message:
                why += f", before a further attempt; attempt {run.attempts} of {run.of}: {last}"
            self._end(run, "failed", failure(why, "transient"))

    def _hurry(self, run: _Run) -> None:
        """Give a handler that runs no more than its share of the grace time."""
        limits = [self._end_of_handlers, self._end_of_grace]
        self._end_of_handlers = min(x for x in limits if x is not None)
        now = time.monotonic()
        run.deadline = min(now + self._share_s(), now if run.deadline is None else run.deadline)
        if run.attempt is not None:
            run.attempt.deadline = run.limit(run.attempt.started)
        elif run.resume_at is not None:
            run.resume_at = now

    def _share_s(self) -> float:
        """Seconds that the handler whose turn it is may take."""
        if self._end_of_handlers is None:
            return HANDLER_DEADLINE_S
        return max(0.0, self._end_of_handlers - time.monotonic()) / self._handlers_left

    # --- one task ---

    def _begin(self, run: _Run) -> None:
        if self.signal is not None and not run.handler:
            self._cancel(run, "stopped before it began")
            return
        report = self._prepare(run)
        if report is not None:
            self._conclude(run, report.outcome, report)
        elif not self._await(run):
            self._attempt_first(run)

    def _attempt_first(self, run: _Run) -> None:
        # What a first attempt half did must be undone too, so its handlers count from here.
        self.registered += run.task.on_exit
        self._attempt(run)

    def _prepare(self, run: _Run) -> Report | None:
        """Resolve what is late and make the module; a report when there is nothing to attempt."""
        task = run.task
        try:
            if not self._resolved(task.when):
                return Report(outcome="skipped", message="its condition is false")
            added = self._resolved(task.environment)
            run.module, problems = build(self._load(task.module), self._resolved(task.args))
            run.env = {**self.env, **{k: _text(k, v) for k, v in added.items() if v is not None}}
            run.harmless = frozenset() if run.module is None else _harmless(run.module)
        except PairunError as e:
            # What only the run could tell does not fit: bad input, found late.
            return _late_problem(e)
        except Exception as e:  # noqa: BLE001 - the exit handlers must run whatever this is
            return failure(described(e), trace=trace_of(e))
        if run.module is not None:
            return None
        message = "; ".join(p.message for p in problems)
        return failure(message, "permanent", "user")

    def _resolved(self, value: Any) -> Any:
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
        self._emit(
            {
                "type": "attempt_begin", "task": run.task.id, "name": run.task.name,
                "module": run.task.module, "attempt": run.attempts, "of": run.of,
                "handler": run.handler,
            }
        )  # fmt: skip
        try:
            self._start(run, run.module, run.limit(time.monotonic()))
        except OSError as e:
            message = f"no process could be started for it: {e.strerror}"
            self._settle(run, failure(message, "transient", "platform"), 0.0, [])

    def _start(self, run: _Run, module: Module, limit: float | None) -> None:
        run.attempt = Attempt(module, run.env, self._pai_dir, limit)
        run.attempt.on_progress = functools.partial(self._progress, run)
        run.lines = OutputLines(run.attempt.output_fd, run.task.id, self._vault, self._emit)

    def _progress(self, run: _Run, progress: Progress) -> None:
        record = {"type": "progress", "task": run.task.id, "attempt": run.attempts}
        self._emit({**record, **attrs.asdict(progress)})

    def _attempt_ended(self, run: _Run, attempt: Attempt, report: Report) -> None:
        assert run.lines is not None
        run.attempt = None
        run.lines.drain()
        if run.lines.open:
            # Something in the background still holds the pipe; it is read on, never broken.
            self.lingering.append(run.lines)
        if run.told is not None:
            self._end(run, *run.told)
        elif run.awaiting is not None:
            self._heard(run, run.awaiting, report)
        else:
            self._settle(run, report, time.monotonic() - attempt.started, run.lines.tail())

    def _settle(self, run: _Run, report: Report, seconds: float, output: list[str]) -> None:
        """Record the end of an attempt, and go on from there."""
        run.report = report
        record = {
            "type": "attempt_end", "task": run.task.id, "attempt": run.attempts, "of": run.of,
            "seconds": round(seconds, 4), "outcome": report.outcome,
        }  # fmt: skip
        if report.failed:
            record |= {k: getattr(report, k) for k in ("kind", "fault", "message", "hint", "trace")}
            record["output"] = output
        self._emit(record)
        if not (report.failed and self._try_again(run, report)):
            self._conclude(run, report.outcome, run.report if report.failed else report)

    def _try_again(self, run: _Run, report: Report) -> bool:
        kind = report.kind
        if run.attempts >= run.of or kind not in run.task.retry_on or run.cancelled:
            return False
        now = time.monotonic()
        asked = report.retry_after_s
        left = None if run.deadline is None else run.deadline - now
        delay = retry_delay(run.task, run.attempts, asked, left)
        resume_at = now + delay
        request = "" if asked is None else _request(asked)
        if run.deadline is not None and resume_at >= run.deadline:
            limit = format_duration(max(0.0, run.deadline - run.started))
            run.report = attrs.evolve(
                report,
                message=f"{report.message} (no further attempt: {request and request + ', and '}"
                f"the next would begin after the task's deadline of {limit})",
            )
            return False
        run.resume_at = resume_at
        run.report = report
        self._emit(
            {
                "type": "wait", "task": run.task.id, "seconds": round(delay, 3),
                "because": f"attempt {run.attempts} of {run.of} failed ({kind}): "
                f"{report.message}{request and f' ({request})'}",
            }
        )  # fmt: skip
        return True

    # --- tasks that one instance runs for others ---

    def _await(self, run: _Run) -> bool:
        """Begin to wait for another instance's verdict, where that one runs the task."""
        task = run.task
        peers = self._peers() if task.run_on != "all" else None
        who = peers.first(task.run_on) if peers else None
        if peers is None or who is None:
            return False
        limit_s = VERDICT_S if task.deadline_s is None else task.deadline_s
        awaiting = Awaiting(peers, peers.topic(task.run_on, task.id), limit_s)
        try:
            self._start(run, awaiting, time.monotonic() + limit_s + TELL_S)
        except OSError:
            return False
        run.awaiting = who
        self._say(run, f"{who} runs it for the others; waiting at most {format_duration(limit_s)}")
        return True

    def _heard(self, run: _Run, who: str, report: Report) -> None:
        """Take over a verdict; run the task here where there is none."""
        run.awaiting = None
        if run.cancelled:
            self._end(run, "failed", report)
        elif not report.failed:
            taken = adopted(report.values)
            self._end(run, taken.outcome, taken)
        else:
            self._say(run, f"no word from {who} ({report.message}): it runs here, too")
            if run.task.deadline_s is not None:
                run.deadline = time.monotonic() + run.task.deadline_s
            self._attempt_first(run)

    def _say(self, run: _Run, line: str) -> None:
        self._emit({"type": "output", "task": run.task.id, "line": self._vault.text(line)})

    def _conclude(self, run: _Run, outcome: Outcome, report: Report) -> None:
        """End a task; tell the instances that wait for it first."""
        task = run.task
        if task.run_on != "all" and not run.handler and self.signal is None:
            peers = self._peers()
            if peers is not None and peers.first(task.run_on) is None:
                said = "none" if run.cancelled else outcome
                verdict = verdict_of(said, report, peers.name, self._vault)
                telling = Telling(peers, peers.topic(task.run_on, task.id), verdict)
                with contextlib.suppress(OSError):
                    self._start(run, telling, time.monotonic() + TELL_S)
                    run.told = (outcome, report)
                    return
        self._end(run, outcome, report)

    def _end(self, run: _Run, outcome: Outcome, report: Report) -> None:
        task = run.task
        harmless = task.failure_policy == "ignore" or report.kind in run.harmless
        if outcome == "failed" and harmless and not run.cancelled:
            outcome = "ignored"
        run.outcome = outcome
        run.report = report
        run.ended = time.monotonic()
        self.results[task.id] = {
            "outcome": outcome,
            "changed": outcome == "changed",
            "message": report.message,
            "values": dict(report.values),
        }
        for name, value in report.environment.items():
            self.exports[name] = value
            if value is None:
                self.env.pop(name, None)
            else:
                self.env[name] = value
        record: dict[str, Any] = {
            "type": "task_end", "task": task.id, "name": task.name, "outcome": outcome,
            "attempts": run.attempts, "of": run.of,
            "seconds": round(run.ended - run.started, 4),
            "message": report.message, "handler": run.handler,
        }  # fmt: skip
        if outcome in ("failed", "ignored"):
            record |= {k: getattr(report, k) for k in ("kind", "fault", "hint")}
            if run.attempts == 0 and report.trace is not None:
                record["trace"] = report.trace
        self._emit(record)


def _harmless(module: Module) -> frozenset[FailureKind]:
    """The kinds of failure that a module calls harmless.

    Raises:
        TypeError: it names something that is no kind.
    """
    kinds = frozenset(module.harmless)
    if not kinds <= frozenset(FAILURE_KINDS):
        name = type(module).__name__
        raise TypeError(
            f"{name}.harmless must hold kinds of failure, it holds {sorted(map(str, kinds))}"
        )
    return kinds


def _request(seconds: float) -> str:
    """What the other side asked for, in words."""
    words = f"the other side asks us to wait {format_duration(max(0.0, seconds))}"
    if seconds > MAX_RETRY_AFTER_S:
        words += f", of which {format_duration(MAX_RETRY_AFTER_S)} are waited"
    return words


def _text(name: str, value: object) -> str:
    value = value.reveal() if isinstance(value, Secret) else value
    if isinstance(value, list | Mapping):
        raise PairunError(Problem("PR605", f"the variable {name} must be a text"))
    text = str(value).lower() if isinstance(value, bool) else str(value)
    try:
        checked_variable(name, text)
    except BadResult as e:
        raise PairunError(Problem("PR605", str(e))) from e
    return text


def _late_problem(error: PairunError) -> Report:
    first = error.problems[0]
    ours = first.id in ("PR602", "PR603", "PR703")
    return failure(
        f"[{first.id}] {first.message}",
        "internal" if ours else "permanent",
        "platform" if ours else "user",
        hint=first.hint,
    )
