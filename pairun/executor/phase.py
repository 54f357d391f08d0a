"""The executor: a plan becomes events and an outcome."""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping
from typing import Self

import attrs

from pairun.base.durations import parse_seconds
from pairun.base.grace import VARIABLE
from pairun.executor.handlers import HandlerTime, handler_variables, handlers_for
from pairun.executor.life import TaskEnd
from pairun.executor.limits import Limits
from pairun.executor.loop import Loop
from pairun.executor.prepare import Resolve, Shared
from pairun.handover.journal import Emit
from pairun.module import Module
from pairun.plan import Event, Group, Peers, Plan
from pairun.secrets.vault import Vault

DEFAULT_EXIT_CODE = {"init": 1, "runtime": 255}
"""Exit code of a phase whose failure is mapped by no ``exit_codes``; OpenPAI's values."""


def with_grace(plan: Plan, env: Mapping[str, str]) -> Plan:
    """The plan with the grace time that the platform gives this Pod, where that is known."""
    seconds = parse_seconds(env.get(VARIABLE, ""))
    return plan if seconds is None else attrs.evolve(plan, grace_s=seconds)


@attrs.frozen(kw_only=True)
class PhaseOutcome:
    """How a phase ended.

    Attributes:
        event: success, failure or signal.
        exit_code: of the process that ran the phase.
        script_code: of the plugin's script that failed the phase, or None.
        failed: id of the task that failed the phase, or None.
        message: why, in one sentence.
    """

    event: Event
    exit_code: int
    script_code: int | None = None
    failed: str | None = None
    message: str = ""


class Executor:
    """Runs the steps of a plan, and the exit handlers that they registered.

    It never imports `pairun.playbook`: a function that it is given resolves late values.

    Args:
        plan: what to run.
        load: module name to class.
        resolve: resolves late values.
        emit: takes every event (`pairun.handover.journal` lists them, and ``output``).
        vault: what no event may hold.
        env: the environment of the tasks; exports of tasks are merged into it.
        pai_dir: the shared volume.
        peers: the other instances of the job, or None where each runs everything itself.

    Attributes:
        plan: what it runs.
        shared: what the tasks share: environment, results, exports, registered handlers.
        loop: where they run.
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
        self.shared = Shared(
            load=load,
            resolve=resolve,
            emit=emit,
            vault=vault,
            env=env,
            pai_dir=pai_dir,
            peers=peers,
        )
        self._handler_time = HandlerTime(plan.grace_s)
        self.loop = Loop(self.shared, self._handler_time)

    def __enter__(self) -> Self:
        """Take over the process's signals: from here on TERM, INT and HUP stop the phase."""
        self.loop.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        """Give the signals back."""
        self.loop.__exit__(*exc)

    def run_tasks(self) -> PhaseOutcome:
        """Run the steps in order until one fails or a signal comes."""
        for step in self.plan.steps:
            if stopped := self.stopped():
                return stopped
            tasks = step.tasks if isinstance(step, Group) else (step,)
            ends = self.loop.run([(task, Limits(task)) for task in tasks])
            # Of a group, the one that failed first: the others were cancelled because of it.
            failures = [end for end in ends if end.outcome == "failed"]
            failed = min(failures, key=lambda end: end.ended, default=None)
            if failed is not None and self.shared.stop_signal is None:
                return self._failure(failed, failed.task.id)
        return self.stopped() or PhaseOutcome(event="success", exit_code=0)

    def run_handlers(self, outcome: PhaseOutcome, budget_s: float | None = None) -> PhaseOutcome:
        """Run the exit handlers for an outcome, last registered first.

        Args:
            outcome: how the tasks (or the user's command) ended.
            budget_s: seconds for all handlers together, or None when only their own limits and
                the grace time bound them; each has its share of the remaining time.

        Returns:
            The outcome, turned into a failure when a handler that may fail the phase failed.
        """
        shared, handlers = self.shared, handlers_for(self.shared.registered, outcome.event)
        shared.env |= handler_variables(
            outcome.event, outcome.exit_code, outcome.message, shared.vault
        )
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
        """The outcome when a stop signal has come up to now, else None."""
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
