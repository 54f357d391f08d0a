"""One thread with one loop: runs the tasks' waits and attempts, and reports their ends."""

from __future__ import annotations

import gc
import select
import signal
import time
from collections.abc import Callable, Sequence
from typing import Self

import attrs

from pairun.base.signals import STOP_SIGNALS, Signals
from pairun.contract.results import ProgressRecord, Report, failure
from pairun.executor.attempt import AttemptProcess
from pairun.executor.life import Life, LoopAnswer, TaskEnd, Wait, Work, live
from pairun.executor.limits import HandlerTime, Limits
from pairun.executor.output import OutputLines
from pairun.executor.shared import Shared
from pairun.plan import Task

MAX_POLL_S = 3600.0
"""The longest single poll(2), in seconds; poll counts milliseconds in an int."""


@attrs.define(kw_only=True)
class _Running:
    """A life and its current wait or work."""

    task: Task
    life: Life
    limits: Limits
    step: Wait | Work | None = None
    attempt: AttemptProcess | None = None
    lines: OutputLines | None = None
    cancelled: str | None = None
    end: TaskEnd | None = None


class Loop:
    """Runs tasks, and handles this process's signals meanwhile.

    Args:
        shared: what the tasks share.
        time_left: the time of exit handlers, which a stop signal limits.

    Attributes:
        lingering: output pipes that background processes of ended attempts hold open.
    """

    def __init__(self, shared: Shared, time_left: HandlerTime) -> None:
        self.lingering: list[OutputLines] = []
        self._shared = shared
        self._time_left = time_left
        self._signals = Signals()

    def __enter__(self) -> Self:
        """Handle the process's signals from now on: TERM, INT and HUP stop the phase."""
        self._signals.install()
        # A garbage collection would copy every page that a forked child shares with us.
        gc.freeze()
        return self

    def __exit__(self, *exc: object) -> None:
        """Restore the previous signal handling."""
        gc.unfreeze()
        self._signals.restore()

    def run(self, tasks: Sequence[tuple[Task, Limits]]) -> list[TaskEnd]:
        """Run tasks in parallel until all have ended; if one fails, cancel the others."""
        running = [_Running(task=t, life=live(t, self._shared, x), limits=x) for t, x in tasks]
        for each in running:
            self._step(each, None)
        # A process is forked only after all tasks are prepared: what they import would copy the
        # pages that it shares with an earlier one.
        for each in running:
            self._begin(each)
        while any(each.end is None for each in running):
            self._turn(running)
        return [each.end for each in running if each.end is not None]

    def take_signals(self, running: Sequence[_Running] = ()) -> None:
        """Check for a stop signal; the first one cancels running work, and limits exit handlers."""
        numbers = [n for n in self._signals.take() if n in STOP_SIGNALS]
        if not numbers or self._shared.stop_signal is not None:
            return
        self._shared.stop_signal = numbers[0]
        self._time_left.stop_at_grace()
        for each in running:
            if each.limits.handler:
                self._hurry(each)
            else:
                self._cancel(each, f"stopped by {signal.Signals(numbers[0]).name}")

    def _turn(self, running: list[_Running]) -> None:
        """Wait for the next event and handle it."""
        for each in running:
            if isinstance(each.step, Wait) and each.step.until <= time.monotonic():
                self._advance(each, LoopAnswer())
        if any(each.end is not None and each.end.outcome == "failed" for each in running):
            for each in running:
                if not (isinstance(each.step, Work) and each.step.to_the_end):
                    self._cancel(each, "another task of its group failed")
        busy = [each for each in running if each.end is None]
        if busy:
            self._poll(busy)
            self.take_signals(busy)
        for each in busy:
            if each.attempt is not None:
                each.attempt.check_time(each.limits.kill_after_s)
                if (report := each.attempt.ended()) is not None:
                    self._work_ended(each, each.attempt, report)

    def _poll(self, busy: list[_Running]) -> None:
        """Wait for a signal, the next limit or data to read; read the data."""
        readers: dict[int, Callable[[], None]] = {x.fd: x.read for x in self.lingering}
        wake_at = [time.monotonic() + MAX_POLL_S]
        for each in busy:
            if isinstance(each.step, Wait):
                wake_at.append(each.step.until)
            if each.attempt is not None:
                if (limit := each.attempt.wake_at()) is not None:
                    wake_at.append(limit)
                if each.attempt.reporting:
                    readers[each.attempt.result_fd] = each.attempt.read_report
            if each.lines is not None and each.lines.open:
                readers[each.lines.fd] = each.lines.read
        poll = select.poll()
        poll.register(self._signals.fd, select.POLLIN)
        for fd in readers:
            poll.register(fd, select.POLLIN)
        # SIGCHLD wakes us if a child ends between two checks.
        for fd, _ in poll.poll(max(0.0, min(wake_at) - time.monotonic()) * 1000):
            if fd in readers:
                readers[fd]()
        self.lingering = [x for x in self.lingering if x.open]

    # --- one life ---

    def _advance(self, each: _Running, answer: LoopAnswer) -> None:
        """Send a task's generator the end of its step, and start its next one."""
        self._step(each, answer)
        self._begin(each)

    def _step(self, each: _Running, answer: LoopAnswer | None) -> None:
        """Run a task's generator to its next step; a new one accepts only None."""
        each.attempt = each.lines = each.cancelled = None
        try:
            each.step = next(each.life) if answer is None else each.life.send(answer)
        except StopIteration as e:
            each.step, each.end = None, e.value

    def _begin(self, each: _Running) -> None:
        """Start the process of a step that needs one."""
        if isinstance(each.step, Work):
            self._start(each, each.step)

    def _start(self, each: _Running, work: Work) -> None:
        shared, now = self._shared, time.monotonic()
        limit = each.limits.of_attempt(now) if work.limit_s is None else now + work.limit_s

        def emit_progress(progress: ProgressRecord) -> None:
            record = {"type": "progress", "task": each.task.id, "attempt": work.attempt}
            shared.emit({**record, **progress._asdict()})

        try:
            attempt = AttemptProcess(
                work.module, work.env, shared.pai_dir, limit, emit_progress, shared.hide
            )
        except OSError as e:
            message = f"no process could be started for it: {e.strerror}"
            self._advance(each, LoopAnswer(report=failure(message, "transient", "platform")))
            return
        each.attempt = attempt
        each.lines = OutputLines(
            attempt.output_fd, each.task.id, shared.vault, shared.emit, attempt.take_secrets
        )

    def _work_ended(self, each: _Running, attempt: AttemptProcess, report: Report) -> None:
        assert each.lines is not None
        each.lines.drain()
        if each.lines.open:
            # A background process still holds the pipe; keep reading it, so that it never breaks.
            self.lingering.append(each.lines)
        answer = LoopAnswer(
            cancelled=each.cancelled,
            report=report,
            seconds=time.monotonic() - attempt.started,
            output=tuple(each.lines.tail()),
        )
        self._advance(each, answer)

    def _cancel(self, each: _Running, why: str) -> None:
        """End a step early; the life is informed after the step's process is gone."""
        if isinstance(each.step, Wait):
            self._advance(each, LoopAnswer(cancelled=why))
        elif each.attempt is not None and each.cancelled is None:
            each.cancelled = why
            each.attempt.stop(why, self._time_left.cancel_wait_s)

    def _hurry(self, each: _Running) -> None:
        """Limit a running exit handler to its share of the grace time."""
        each.limits.shorten(self._time_left.share_s())
        if isinstance(each.step, Wait):
            each.step = Wait(time.monotonic())
        elif each.attempt is not None:
            limits = (each.attempt.deadline, each.limits.of_attempt(each.attempt.started))
            each.attempt.deadline = min((x for x in limits if x is not None), default=None)
