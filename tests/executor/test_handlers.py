"""Exit handlers: who registers them, for which outcome they run, in which time."""

from __future__ import annotations

from typing import Any

import pytest

from pairun.executor import limits
from pairun.plan import EVENTS, Task
from tests.stopwatch import Stopwatch

DEAF = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"


def handler(here: Any, name: str, code: str | None = None, **more: Any) -> Task:
    """A handler for every outcome that says its name."""
    made: Task = here.task(
        name,
        f"print('{name}')" if code is None else code,
        **{"events": EVENTS, "failure_policy": "ignore", **more},
    )
    return made


def ran(here: Any) -> list[str]:
    """The handlers that ran, in order."""
    return [e["task"] for e in here.of("attempt_begin") if e["handler"] and e["attempt"] == 1]


def test_reverse_order(here: Any) -> None:
    """The last one registered runs first."""
    here.run(
        here.task("a", on_exit=(handler(here, "a1"), handler(here, "a2"))),
        here.task("b", on_exit=(handler(here, "b1"),)),
    )
    assert ran(here) == ["b1", "a2", "a1"]
    assert here.of("handlers_begin")[0]["count"] == 3


@pytest.mark.parametrize("event", ["success", "failure"])
def test_events(here: Any, event: str) -> None:
    """A handler runs for the outcomes that it names, and the phase has exactly one."""
    handlers = tuple(handler(here, e, events=(e,)) for e in EVENTS)
    outcome = here.run(
        here.task("a", on_exit=(*handlers, handler(here, "always"))),
        here.task("b", "1/0" if event == "failure" else ""),
    )
    assert outcome.event == event
    assert ran(here) == ["always", event]


def test_handlers_are_told_how_it_ended(here: Any) -> None:
    """Event, exit code and message stand in variables, without secrets and without a NUL."""
    here.secrets.append("hunter2")
    say = "[print(n, repr(v)) for n, v in sorted(ctx.env.items()) if n[:8] in ('PAIRUN_E', 'PAIRUN_M')]"
    fails = "from pairun.module import Permanent; raise Permanent('no hunter2\\0 here')"
    here.run(here.task("a", on_exit=(handler(here, "h", say),)), here.task("b", fails))
    lines = [e["line"] for e in here.of("output") if e["task"] == "h"]
    assert lines == [
        "PAIRUN_EVENT 'failure'", "PAIRUN_EXIT_CODE '1'", "PAIRUN_MESSAGE 'b: no ****** here'",
    ]  # fmt: skip


def test_skipped_and_unusable_tasks_register_none(here: Any) -> None:
    """A task without an attempt has nothing to undo."""
    here.run(
        here.task("a", when=False, on_exit=(handler(here, "h1"),)),
        here.task("b", args={"number": "x"}, on_exit=(handler(here, "h2"),)),
    )
    assert ran(here) == []


@pytest.mark.parametrize(
    "code",
    ["raise Permanent('x')", "import os; os.kill(os.getpid(), 9)", "import time; time.sleep(60)"],
)
def test_half_done_is_undone(here: Any, code: str) -> None:
    """An attempt that fails, is killed or times out has registered its task's handlers."""
    here.run(here.task(code=code, timeout_s=0.3, on_exit=(handler(here, "undo"),)))
    assert ran(here) == ["undo"]
    assert here.lines("undo") == ["undo"]


def test_registered_once(here: Any) -> None:
    """Further attempts register nothing again."""
    task = here.task(code="raise Transient('x')", retries=2, delay_s=0.0)
    here.run(here.task("b", on_exit=()), here.task(
        "a", task.args["code"], retries=2, delay_s=0.0, on_exit=(handler(here, "undo"),)))  # fmt: skip
    assert ran(here) == ["undo"]


def test_each_runs_whatever_the_others_did(here: Any) -> None:
    """Handlers that fail, vanish or find bad input keep none from running."""
    codes = ["1/0", "import os; os._exit(1)", "raise Permanent('x')"]
    broken = [handler(here, f"h{i}", code) for i, code in enumerate(codes)]
    odd = here.task("odd", args={"no_such": 1}, events=EVENTS, failure_policy="ignore")
    outcome = here.run(here.task(on_exit=(handler(here, "first"), *broken, odd)))
    assert here.lines("first") == ["first"]
    assert outcome.event == "success"
    assert [here.end(f"h{i}")["outcome"] for i in range(3)] == ["ignored"] * 3


def test_a_handler_may_fail_the_phase(here: Any) -> None:
    """With `failure_policy: fail` a handler turns success into failure, with its own code."""
    strict = handler(here, "h", "raise Permanent('x')", failure_policy="fail",
                     exit_codes={"permanent": 77})  # fmt: skip
    outcome = here.run(here.task(on_exit=(handler(here, "last"), strict)))
    assert (outcome.event, outcome.failed, outcome.exit_code) == ("failure", "h", 77)
    assert outcome.message == "exit handler h: x"
    assert ran(here) == ["h", "last"]


def test_a_handler_never_changes_a_failure(here: Any) -> None:
    """After a failure the outcome stays the task's, whatever handlers do."""
    strict = handler(here, "h", "1/0", failure_policy="fail", exit_codes={"internal": 77})
    task = here.task("a", "raise Permanent('x')", exit_codes={"permanent": 5}, on_exit=(strict,))
    outcome = here.run(task)
    assert (outcome.event, outcome.failed, outcome.exit_code) == ("failure", "a", 5)


def test_results_and_retries_of_handlers(here: Any) -> None:
    """A handler sees results and exports, and is tried again like a task."""
    code = (
        "import os\npath = ctx.pai_dir + '/once'\n"
        "if not os.path.exists(path): open(path, 'w'); raise Transient('x')\nprint(ctx.env['A'])"
    )
    here.run(
        here.task("a", "result = Result(environment={'A': 'exported'})",
                  on_exit=(handler(here, "h", code, retries=1, delay_s=0.0),)),
    )  # fmt: skip
    assert here.lines("h") == ["exported"]


@pytest.mark.parametrize("budget_s", [0.5, 1.5])
@pytest.mark.parametrize("code", [DEAF, "import time; time.sleep(60)"])
@pytest.mark.slow
def test_the_whole_never_exceeds_its_time(here: Any, budget_s: float, code: str) -> None:
    """Handlers that hang and ignore TERM have their share each, and all are over in time."""
    hanging = [handler(here, f"h{i}", code, timeout_s=50.0, retries=5) for i in range(3)]
    task = here.task(on_exit=(handler(here, "last"), *hanging, handler(here, "first")))
    with Stopwatch() as alone:
        here.run(task, handlers=False)
    here.events.clear()
    # a busy machine does less in a second
    budget_s *= alone.slowness
    with Stopwatch() as watch:
        here.run(task, budget_s=budget_s)
    assert watch.within(budget_s + 0.6), watch
    assert ran(here) == ["first", "h2", "h1", "h0", "last"]
    assert here.lines("last") == ["last"]
    # what the first did not need is the others'
    shares = [here.end(f"h{i}")["seconds"] for i in (2, 1, 0)]
    assert all(watch.within(budget_s / 4 + 0.3, took_s=share) for share in shares), (shares, watch)


def test_no_time_at_all(here: Any) -> None:
    """With no time left every handler is still begun, and nothing waits for it."""
    with Stopwatch() as watch:
        here.run(
            here.task(on_exit=tuple(handler(here, f"h{i}", DEAF) for i in range(3))), budget_s=0.0
        )
    assert ran(here) == ["h2", "h1", "h0"]
    assert watch.within(2.0), watch


def test_a_handlers_own_deadline(here: Any) -> None:
    """A handler's own limits hold within its share."""
    slow = handler(here, "h", "import time; time.sleep(60)", deadline_s=0.3)
    with Stopwatch() as watch:
        here.run(here.task(on_exit=(slow,)))
    assert here.end("h")["kind"] == "timeout"
    assert watch.within(5.0), watch


@pytest.mark.parametrize(
    ("deadline_s", "outcome"), [(None, "ignored"), (20.0, "ok")], ids=["default", "own"]
)
def test_own_deadline(
    here: Any, monkeypatch: pytest.MonkeyPatch, deadline_s: float | None, outcome: str
) -> None:
    """The default bounds a handler that says nothing itself; one with a deadline has all of it."""
    monkeypatch.setattr(limits, "HANDLER_DEADLINE_S", 0.5)
    handler = here.task(
        "h", "import time; time.sleep(1.5)", events=EVENTS, failure_policy="ignore",
        deadline_s=deadline_s,
    )  # fmt: skip
    here.run(here.task("a", on_exit=(handler,)))
    assert here.end("h")["outcome"] == outcome


def test_a_budget_is_shared(here: Any) -> None:
    """Once there is an end for all of them, an own deadline does not reach beyond it."""
    handler = here.task(
        "h", "import time; time.sleep(20)", events=EVENTS, failure_policy="ignore", deadline_s=60.0
    )
    here.run(here.task("a", on_exit=(handler,)), budget_s=0.5)
    assert here.end("h")["outcome"] == "ignored"
    assert here.end("h")["seconds"] < 10
