"""The executor: runs a plan; produces events and an outcome."""

from __future__ import annotations

import signal
import time

import attrs

from pairun.base.durations import parse_seconds
from pairun.base.grace import GRACE_VARIABLE
from pairun.executor.life import TaskEnd
from pairun.executor.limits import HandlerTime, Limits
from pairun.executor.loop import Loop
from pairun.executor.shared import Shared
from pairun.plan import Event, Group, Plan

DEFAULT_EXIT_CODE = {"init": 1, "runtime": 255}
"""Exit code of a phase if no ``exit_codes`` map its failure; OpenPAI's values."""

_MAX_MESSAGE = 4096
"""The maximum length of a message in an exit handler's variable, in characters."""


@attrs.frozen(kw_only=True)
class PhaseOutcome:
    """How a phase ended.

    Attributes:
        event: success, failure or signal.
        exit_code: of the process that ran the phase.
        script_code: of the plugin script that failed the phase, or None.
        failed: id of the task that failed the phase, or None.
    """

    event: Event
    exit_code: int
    script_code: int | None = None
    failed: str | None = None
    message: str = ""


class Executor:
    """Runs the steps of a plan, and the exit handlers that they register.

    Attributes:
        loop: runs the tasks; inside ``with executor.loop:`` it handles the process's signals.
    """

    def __init__(self, plan: Plan, shared: Shared) -> None:
        self.plan = plan
        self.shared = shared
        # The platform's grace time for this Pod overrides the plan's.
        grace_s = parse_seconds(shared.env.get(GRACE_VARIABLE, ""))
        self._handler_time = HandlerTime(plan.grace_s if grace_s is None else grace_s)
        self.loop = Loop(shared, self._handler_time)
        self._began = time.monotonic()

    def begin(self) -> None:
        """Record that the phase begins."""
        self._began = time.monotonic()
        tasks = sum(1 for _ in self.plan.tasks())
        record = {"phase": self.plan.phase, "pairun": self.plan.pairun, "tasks": tasks}
        self.shared.emit({"type": "phase_begin", **record})

    def end(self, outcome: PhaseOutcome) -> None:
        """Record how the phase ended."""
        self.shared.emit(
            {
                "type": "phase_end", "phase": self.plan.phase, "outcome": outcome.event,
                "exit_code": outcome.exit_code, "message": outcome.message,
                "seconds": round(time.monotonic() - self._began, 4),
            }
        )  # fmt: skip

    def run_tasks(self) -> PhaseOutcome:
        """Run the steps in order until one fails or a signal arrives."""
        for step in self.plan.steps:
            if stopped := self.stopped():
                return stopped
            tasks = step.tasks if isinstance(step, Group) else (step,)
            ends = self.loop.run([(task, Limits(task)) for task in tasks])
            # Of a group, the task that failed first: the others were cancelled because of it.
            failures = [end for end in ends if end.outcome == "failed"]
            failed = min(failures, key=lambda end: end.ended, default=None)
            if failed is not None and self.shared.stop_signal is None:
                return self._failure(failed, failed.task.id)
        return self.stopped() or PhaseOutcome(event="success", exit_code=0)

    def run_handlers(self, outcome: PhaseOutcome, budget_s: float | None = None) -> PhaseOutcome:
        """Run the exit handlers for an outcome, last registered first.

        Args:
            outcome: how the tasks (or the user's command) ended.
            budget_s: seconds for all handlers together; None if only their own limits and the grace
                time apply.

        Returns:
            The outcome; a success becomes a failure if a handler failed that may fail the phase.
        """
        shared = self.shared
        handlers = [h for h in reversed(shared.registered) if outcome.event in h.events]
        shared.env |= {
            "PAIRUN_EVENT": outcome.event,
            "PAIRUN_EXIT_CODE": str(outcome.exit_code),
            "PAIRUN_MESSAGE": shared.vault.text(outcome.message).replace("\0", "")[:_MAX_MESSAGE],
        }
        if handlers:
            count = len(handlers)
            shared.emit({"type": "handlers_begin", "event": outcome.event, "count": count})
        if budget_s is not None:
            self._handler_time.limit(budget_s)
        for number, handler in enumerate(handlers):
            self._handler_time.waiting = len(handlers) - number
            share_s = self._handler_time.share_of(handler)
            (end,) = self.loop.run([(handler, Limits(handler, handler=True, share_s=share_s))])
            if end.outcome == "failed" and outcome.event == "success":
                outcome = self._failure(end, f"exit handler {handler.id}")
        return (outcome.event == "success" and self.stopped()) or outcome

    def stopped(self) -> PhaseOutcome | None:
        """The outcome after a stop signal, else None."""
        self.loop.take_signals()
        number = self.shared.stop_signal
        if number is None:
            return None
        message = f"stopped by {signal.Signals(number).name}"
        return PhaseOutcome(event="signal", exit_code=128 + number, message=message)

    def _failure(self, end: TaskEnd, what: str) -> PhaseOutcome:
        code = end.task.exit_codes.get(end.report.kind, DEFAULT_EXIT_CODE[self.plan.phase])
        message = f"{what}: {end.report.message}"
        return PhaseOutcome(
            event="failure",
            exit_code=code,
            script_code=end.report.exit_code if end.task.of_plugin else None,
            failed=end.task.id,
            message=message,
        )
