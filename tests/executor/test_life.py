"""One task's life: what it yields by hand, and failures of harmless kinds with real attempts."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest

from pairun.contract.results import Report, failure
from pairun.executor.life import Life, LoopAnswer, TaskEnd, Wait, Work, live
from pairun.executor.limits import Limits
from pairun.executor.shared import Shared
from pairun.module import CheckModule, FailureKind, Module, define
from pairun.plan import Task
from pairun.secrets.vault import Vault


@define
class Nothing(CheckModule):
    """What nobody runs here."""


class Desk:
    """What a life shares, and the events that it emits."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.shared = Shared(
            load=lambda _: Nothing, resolve=self.refuse, emit=self.events.append, vault=Vault(),
            env={}, pai_dir="/nowhere",
        )  # fmt: skip

    @staticmethod
    def refuse(*_: Any) -> Any:
        """There are no late values here."""
        raise NotImplementedError

    def begin(self, **more: Any) -> Life:
        """A task's life."""
        task = Task(id="a", name="A", module="nothing", args={}, **more)
        return live(task, self.shared, Limits(task))

    @property
    def types(self) -> list[str]:
        """The events so far."""
        return [e["type"] for e in self.events]


def end_of(life: Life, answer: LoopAnswer | None) -> TaskEnd:
    """The end of a life that yields nothing more."""
    with pytest.raises(StopIteration) as caught:
        next(life) if answer is None else life.send(answer)
    end: TaskEnd = caught.value.value
    return end


FAILED = LoopAnswer(report=failure("x", "transient"))


def test_from_the_first_attempt_to_the_end() -> None:
    """It yields an attempt, a wait, an attempt, and returns how the task ended."""
    desk = Desk()
    undo = Task(id="undo", name="U", module="nothing", args={})
    life = desk.begin(retries=1, delay_s=0.0, on_exit=(undo,))
    first = next(life)
    assert isinstance(first, Work)
    assert (first.attempt, desk.shared.registered) == (1, [undo])
    assert isinstance(life.send(FAILED), Wait)
    second = life.send(LoopAnswer())
    assert isinstance(second, Work)
    assert second.attempt == 2
    report = Report(outcome="ok", values={"n": 1}, environment={"A": "x"})
    end = end_of(life, LoopAnswer(report=report))
    assert (end.outcome, desk.shared.env) == ("ok", {"A": "x"})
    assert desk.shared.results["a"]["values"] == {"n": 1}
    assert desk.types == [
        "attempt_begin", "attempt_end", "wait", "attempt_begin", "attempt_end", "task_end"
    ]  # fmt: skip


def test_what_is_skipped_yields_nothing() -> None:
    """A task without an attempt registers no handlers, and ends at once."""
    desk = Desk()
    undo = Task(id="undo", name="U", module="nothing", args={})
    assert end_of(desk.begin(when=False, on_exit=(undo,)), None).outcome == "skipped"
    assert (desk.shared.registered, desk.types) == ([], ["task_end"])


def test_a_cancellation_is_a_value() -> None:
    """A cancelled attempt is not retried, and its failure is not ignored."""
    desk = Desk()
    life = desk.begin(retries=3, failure_policy="ignore")
    next(life)
    stopped = failure("stopped by SIGTERM", "transient")
    end = end_of(life, LoopAnswer(report=stopped, cancelled="stopped by SIGTERM"))
    assert (end.outcome, end.report.message) == ("failed", "stopped by SIGTERM")


def test_a_wait_that_is_cancelled() -> None:
    """The task ends with the reason, and with the failure that it waited to retry."""
    life = Desk().begin(retries=3, delay_s=60.0)
    next(life)
    life.send(FAILED)
    end = end_of(life, LoopAnswer(cancelled="another task of its group failed"))
    assert end.report.message == (
        "another task of its group failed, before a further attempt; attempt 1 of 4: x"
    )


def test_one_that_cannot_be_made() -> None:
    """An error of the loader is the task's failure, with its trace in the record."""
    desk = Desk()

    def load(_: str) -> type[Module]:
        raise ZeroDivisionError("oops")

    desk.shared.load = load
    assert end_of(desk.begin(), None).report.kind == "internal"
    assert "oops" in desk.events[0]["trace"]


# --- harmless kinds -------------------------------------------------------------------------------

SLEEP = "import time; time.sleep(60)"


def lenient(here: Any, code: str, kinds: list[str] | None = None, **more: Any) -> Task:
    """A task of the module `lenient`."""
    args = {"code": code} if kinds is None else {"code": code, "kinds": kinds}
    made: Task = here.task(more.pop("name", "a"), module="lenient", args=args, **more)
    return made


def test_no_kind_is_harmless_by_default() -> None:
    """A module that declares nothing fails with every kind."""
    assert Module().harmless == CheckModule().harmless == frozenset()


def test_a_harmless_failure_is_ignored(here: Any) -> None:
    """The task ends as ignored with its kind and message, and the phase succeeds."""
    task = lenient(here, "raise Transient('slow registry')", exit_codes={"transient": 254})
    outcome = here.run(task, here.task("b"))
    assert (outcome.event, outcome.exit_code) == ("success", 0)
    end = here.end()
    assert (end["outcome"], end["kind"], end["message"]) == (
        "ignored",
        "transient",
        "slow registry",
    )
    (record,) = [r for r in here.journal if r["type"] == "task_end" and r["task"] == "a"]
    assert (record["outcome"], record["kind"], record["fault"]) == (
        "ignored",
        "transient",
        "unknown",
    )
    assert "slow registry [transient: " in here.console
    assert here.results["a"]["outcome"] == "ignored"
    assert here.end("b")["outcome"] == "ok"


def test_it_is_retried_first(here: Any) -> None:
    """All attempts are made before the failure is ignored."""
    here.run(lenient(here, "raise Transient('x')", retries=2, delay_s=0.0))
    assert (here.end()["outcome"], here.end()["attempts"]) == ("ignored", 3)
    assert [e["outcome"] for e in here.of("attempt_end")] == ["failed"] * 3


def test_another_kind_fails(here: Any) -> None:
    """A kind that the module does not name fails the phase with its exit code."""
    task = lenient(here, "raise Permanent('no such image')", exit_codes={"permanent": 254})
    assert here.run(task).exit_code == 254
    assert here.end()["outcome"] == "failed"


def test_it_depends_on_the_arguments(here: Any) -> None:
    """A property decides from the task's own arguments."""
    assert here.run(lenient(here, "raise Permanent('x')", ["permanent"])).event == "success"
    assert here.run(lenient(here, "raise Permanent('x')", [], name="b")).event == "failure"


@pytest.mark.parametrize("limit", ["timeout_s", "deadline_s"])
def test_the_executors_own_timeouts_count(here: Any, limit: str) -> None:
    """An attempt that is stopped at its timeout or at the task's deadline is a timeout."""
    limits: Any = {limit: 0.2}
    assert here.run(lenient(here, SLEEP, **limits)).event == "success"
    assert (here.end()["outcome"], here.end()["kind"]) == ("ignored", "timeout")


def test_a_wait_that_would_exceed_the_deadline(here: Any) -> None:
    """The last failure before the deadline counts, and is harmless where its kind is."""
    code = "raise Transient('busy', retry_after_s=600)"
    here.run(lenient(here, code, retries=3, deadline_s=5.0))
    assert (here.end()["outcome"], here.end()["attempts"]) == ("ignored", 1)
    assert "busy (no further attempt" in here.end()["message"]


def test_a_cancelled_task_is_not_ignored(here: Any, group: Any) -> None:
    """What is stopped because another task of its group failed has failed."""
    os.mkfifo(here.folder / "fifo")
    fifo = str(here.folder / "fifo")
    waits = lenient(here, f"open({fifo!r}, 'w'); {SLEEP}", timeout_s=50.0)
    outcome = here.run(group(waits, here.task("b", f"open({fifo!r}).read(); 1/0")))
    assert (outcome.failed, here.end()["outcome"]) == ("b", "failed")


def test_a_signal_is_not_ignored(here: Any) -> None:
    """What a stop signal cancels has failed, and the phase ends by the signal."""
    parent = os.getpid()
    outcome = here.run(lenient(here, f"import os; os.kill({parent}, {signal.SIGTERM}); {SLEEP}"))
    assert (outcome.event, outcome.exit_code) == ("signal", 143)
    assert here.end()["outcome"] == "failed"


def test_in_a_group_it_cancels_nothing(here: Any, group: Any) -> None:
    """The other tasks of the group run to their end."""
    other = here.task("b", "import time; time.sleep(0.3); print('done')")
    assert here.run(group(lenient(here, "raise Transient('x')"), other)).event == "success"
    assert here.lines("b") == ["done"]


def test_a_handler_too(here: Any) -> None:
    """An exit handler with `failure_policy: fail` does not fail the phase by a harmless kind."""
    handler = lenient(here, "raise Transient('x')", name="h", events=("success",))
    assert here.run(here.task(on_exit=(handler,))).event == "success"
    assert here.end("h")["outcome"] == "ignored"


def test_what_is_no_kind_is_the_modules_error(here: Any) -> None:
    """A module that names something else as harmless fails before its first attempt."""
    assert here.run(lenient(here, "", ["sometimes"])).event == "failure"
    assert (here.end()["kind"], here.of("attempt_begin")) == ("internal", [])
    assert "harmless" in here.end()["message"]


def test_a_class_may_declare_it() -> None:
    """A plain class attribute does, where the arguments do not matter."""

    class Plain(CheckModule):
        harmless = frozenset[FailureKind]({"transient"})

    assert Plain().harmless == {"transient"}
