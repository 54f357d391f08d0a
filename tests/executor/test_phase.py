"""How a phase ends: by success, by a failure, and by a signal at every moment."""

from __future__ import annotations

import json
import os
import pathlib
import random
import resource
import signal
from collections.abc import Callable
from typing import Any

import pytest

from pairun.plan import EVENTS, Late, Task
from pairun.volume.journal import JOURNAL_SCHEMA
from tests.stopwatch import Stopwatch


def test_ignored(here: Any) -> None:
    """A failure that is ignored is no failure of the phase, and later tasks run."""
    outcome = here.run(here.task("a", "1/0", failure_policy="ignore"), here.task("b"))
    assert outcome.event == "success"
    assert [e["outcome"] for e in here.of("task_end")] == ["ignored", "ok"]
    assert here.results["a"]["outcome"] == "ignored"


def test_the_first_failure_is_the_last_task(here: Any) -> None:
    """Nothing runs after a failure."""
    here.run(here.task("a", "1/0"), here.task("b"))
    assert [e["task"] for e in here.of("task_end")] == ["a"]


@pytest.mark.parametrize(("phase", "default"), [("init", 1), ("runtime", 255)])
def test_exit_codes(here: Any, phase: str, default: int) -> None:
    """The kind of the failure chooses the exit code; what is not mapped has the phase's."""
    codes = {"conflict": 253}
    conflict = here.task(code="raise Conflict('taken')", exit_codes=codes)
    assert here.run(conflict, phase=phase).exit_code == 253
    assert here.run(here.task(code="1/0", exit_codes=codes), phase=phase).exit_code == default
    assert here.run(here.task(), phase=phase).exit_code == 0


SLEEP = "import time; print('up', flush=True); time.sleep(60)"
STOPS = [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)]


@pytest.fixture
def task(here: Any) -> Callable[..., Task]:
    """Makes a task."""
    made: Callable[..., Task] = here.task
    return made


@pytest.fixture
def undo(task: Callable[..., Task]) -> Task:
    """A handler for a signal that says so, and fails."""
    return task("undo", "print('undone'); 1/0", events=("signal",), failure_policy="fail")


@pytest.mark.parametrize(("number", "code"), STOPS)
def test_during_an_attempt(
    there: Any, task: Any, undo: Task, number: signal.Signals, code: int
) -> None:
    """The attempt is cancelled, nothing else begins, the handlers run, the code tells the signal."""
    there.start(task("a", SLEEP, retries=3, on_exit=(undo,)), task("b"))
    there.line("a | up")
    there.signal(number)
    assert there.end() == code
    there.line("undo | undone")
    (end,) = there.of("task_end", "a")
    assert (end["outcome"], end["message"]) == ("failed", f"stopped by {number.name}")
    assert there.of("attempt_begin", "b") == []
    (phase,) = there.of("phase_end")
    assert (phase["outcome"], phase["exit_code"]) == ("signal", code)


def test_an_ignored_failure_does_not_hide_the_signal(there: Any, task: Any, undo: Task) -> None:
    """A task whose failures are ignored is cancelled like any other."""
    there.start(task("a", SLEEP, failure_policy="ignore", on_exit=(undo,)), task("b"))
    there.line("a | up")
    there.signal(signal.SIGTERM)
    assert there.end() == 143
    assert there.of("attempt_begin", "b") == []


def test_during_a_wait_between_attempts(there: Any, task: Any, undo: Task) -> None:
    """A wait ends at once."""
    code = "raise Transient('the disk is full', retry_after_s=60)"
    there.start(task("a", code, retries=3, on_exit=(undo,)))
    there.line("retry")
    there.signal(signal.SIGTERM)
    assert there.end() == 143
    there.line("undo | undone")
    (end,) = there.of("task_end", "a")
    assert end["attempts"] == 1
    assert end["message"] == (
        "stopped by SIGTERM, before a further attempt; attempt 1 of 4: the disk is full"
    )


def test_in_a_group(there: Any, task: Any, group: Any, undo: Task) -> None:
    """All tasks of a group are cancelled."""
    there.start(group(task("a", SLEEP, on_exit=(undo,)), task("b", SLEEP)), task("c"))
    there.line("a | up")
    there.line("b | up")
    there.signal(signal.SIGTERM)
    assert there.end() == 143
    assert {r["task"] for r in there.of("attempt_begin")} == {"a", "b", "undo"}


def test_between_tasks(here: Any, undo: Task) -> None:
    """A signal that comes between two tasks lets no further one begin."""
    send = "import os, signal; os.kill(os.getppid(), signal.SIGTERM)"
    # It arrives while the attempt runs, or between the two, as the scheduler likes.
    outcome = here.run(here.task("a", send, on_exit=(undo,)), here.task("b"))
    assert (outcome.event, outcome.exit_code) == ("signal", 143)
    assert here.of("attempt_begin", "b") == []
    assert here.lines("undo") == ["undone"]


@pytest.mark.parametrize("kind", ["task_end", "attempt_end", "attempt_begin"])
@pytest.mark.parametrize("last", [True, False])
def test_at_every_event(here: Any, undo: Task, kind: str, last: bool) -> None:
    """Wherever in a task the signal comes, also in the very last one: never 0."""
    at = {"task_end": 1, "attempt_end": 1, "attempt_begin": 1}

    class Sender(list[dict[str, Any]]):
        def append(self, event: dict[str, Any]) -> None:
            super().append(event)
            if event["type"] == kind and not event.get("handler"):
                at[kind] -= 1
                if at[kind] == 0:
                    signal.raise_signal(signal.SIGTERM)

    here.events = Sender()
    steps = [here.task("a", on_exit=(undo,))] if last else [
        here.task("a", on_exit=(undo,)), here.task("b", when=False), here.task("c")]  # fmt: skip
    outcome = here.run(*steps)
    assert (outcome.event, outcome.exit_code) == ("signal", 143)
    assert here.of("attempt_begin", "c") == []
    assert here.lines("undo") == ["undone"]


def test_while_nothing_runs(here: Any) -> None:
    """A phase in which every task is skipped is stopped like any other."""

    def resolve(*_: Any) -> bool:
        signal.raise_signal(signal.SIGTERM)
        return False

    late = Late(template="x", because="x")
    outcome = here.run(here.task("a", when=late), resolve=resolve)
    assert outcome.exit_code == 143


def test_twice(there: Any, task: Any) -> None:
    """A second signal changes nothing: the handlers run to their end."""
    handler = task("h", "print('begun', flush=True); open(ctx.pai_dir + '/go').read(); print('ended')",
                   events=EVENTS)  # fmt: skip
    os.mkfifo(there.folder / "go")
    there.start(task("a", SLEEP, on_exit=(handler,)))
    there.line("a | up")
    there.signal(signal.SIGTERM)
    there.line("h | begun")
    there.signal(signal.SIGTERM)
    there.signal(signal.SIGINT)
    with open(there.folder / "go", "w", encoding="utf-8") as f:
        f.write("x")
    assert there.end() == 143
    there.line("h | ended")


@pytest.mark.parametrize("failed", [True, False])
def test_during_handlers(there: Any, task: Any, failed: bool) -> None:
    """The handler that runs and those after it must be over within the grace time."""
    deaf = "import signal, time; signal.signal(15, 1); print('up', flush=True); time.sleep(60)"
    handlers = tuple(task(f"h{i}", deaf, events=EVENTS, failure_policy="ignore") for i in range(3))
    last = task("last", "print('ran')", events=EVENTS)
    there.start(task("a", "1/0" if failed else "", on_exit=(last, *handlers)), grace_s=2.0)
    there.line("h2 | up")
    with Stopwatch() as watch:
        there.signal(signal.SIGTERM)
        assert there.end() == (1 if failed else 143)
    assert watch.within(2.0), watch
    assert [r["task"] for r in there.of("attempt_begin")] == ["a", "h2", "h1", "h0", "last"]


def test_a_handler_that_waits_is_hurried(there: Any, task: Any) -> None:
    """A handler between two attempts tries at once when the time becomes short."""
    code = "raise Transient('x', retry_after_s=60)"
    there.start(task("a", on_exit=(task("h", code, retries=1, events=EVENTS),)), grace_s=5.0)
    there.line("retry")
    there.signal(signal.SIGTERM)
    # what is not hurried waits for longer than the test does
    assert there.end() == 1
    assert there.of("task_end", "h")[0]["attempts"] == 2


@pytest.mark.slow
def test_the_whole_stop_fits_into_the_grace_time(there: Any, task: Any) -> None:
    """A task and handlers that hang and ignore TERM are all over before the platform kills us."""
    deaf = "import signal, time; signal.signal(15, 1); print('up', flush=True); time.sleep(60)"
    handlers = tuple(task(f"h{i}", deaf, events=EVENTS) for i in range(4))
    there.start(task("a", deaf, on_exit=handlers), grace_s=3.0)
    there.line("a | up")
    with Stopwatch() as watch:
        there.signal(signal.SIGTERM)
        assert there.end() == 143
    assert watch.within(3.0), watch
    assert len([r for r in there.of("attempt_begin") if r["handler"]]) == 4


def test_as_pid_1(there: Any, task: Any, undo: Task) -> None:
    """As PID 1, where a signal without a handler is dropped, the phase is stopped as well."""
    there.prefix = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if os.getuid() != 0:
        there.prefix += ["--user", "--map-root-user"]
    if os.spawnvp(os.P_WAIT, "unshare", [*there.prefix, "true"]) != 0:
        pytest.skip("this kernel lets us make no PID namespace")
    there.start(task("a", SLEEP, on_exit=(undo,)))
    there.line("a | up")
    with open(f"/proc/{there.process.pid}/task/{there.process.pid}/children", "rb") as f:
        os.kill(int(f.read()), signal.SIGTERM)
    assert there.end() == 143
    there.line("undo | undone")


# --- the journal of a phase ---

FIELDS = {
    "phase_begin": {"phase", "pairun", "tasks"},
    "attempt_begin": {"task", "name", "module", "attempt", "of", "handler"},
    "attempt_end": {"task", "attempt", "of", "outcome", "seconds"},
    "wait": {"task", "seconds", "because"},
    "task_end": {"task", "name", "outcome", "attempts", "of", "seconds", "message", "handler"},
    "handlers_begin": {"event", "count"},
    "phase_end": {"phase", "outcome", "exit_code", "seconds", "message"},
}
FAILURE = {
    "attempt_end": {"kind", "fault", "message", "hint", "output", "trace"},
    "task_end": {"kind", "fault", "hint"},
}


def test_schema(here: Any) -> None:
    """Every record has exactly the fields that the journal's description names."""
    undo = here.task("undo", events=("failure",))
    here.run(
        here.task("ok", on_exit=(undo,)),
        here.task("retried", "print('tail'); raise Transient('x')", retries=1, delay_s=0.0),
    )
    assert {r["type"] for r in here.journal} == set(FIELDS) - {"phase_begin"}
    for record in here.journal:
        expected = FIELDS[record["type"]] | {"schema", "time", "type"}
        if record.get("outcome") == "failed":
            expected |= FAILURE[record["type"]]
        assert set(record) == expected
        assert record["schema"] == JOURNAL_SCHEMA
    failed = [r for r in here.journal if r["type"] == "attempt_end" and r["outcome"] == "failed"]
    assert [r["output"] for r in failed] == [["tail"], ["tail"]]


def test_one_begin_and_one_end_per_attempt(here: Any, group: Any) -> None:
    """Whatever becomes of an attempt, it has one record of each kind."""
    here.run(
        here.task("a", "raise Transient('x')", retries=2, delay_s=0.0, failure_policy="ignore"),
        here.task("b", "import os; os.kill(os.getpid(), 9)", failure_policy="ignore"),
        here.task("c", "import time; time.sleep(60)", timeout_s=0.1, failure_policy="ignore"),
        group(here.task("d", "import time; time.sleep(60)"), here.task("e", "1/0")),
    )
    begins, ends = (
        [(r["task"], r["attempt"]) for r in here.journal if r["type"] == kind]
        for kind in ("attempt_begin", "attempt_end")
    )
    assert sorted(begins) == sorted(ends)
    assert len(set(begins)) == len(begins) == 7


def test_a_full_disk_costs_the_journal_only(here: Any, tmp_path: pathlib.Path) -> None:
    """When the journal cannot grow, the phase goes on, and it is said once."""
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    here.run(here.task("a"))
    size = (tmp_path / "journal.jsonl").stat().st_size
    with open(tmp_path / "console", "w", encoding="utf-8"):
        pass
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 200, old[1]))
        outcome = here.run(here.task("b"), here.task("c"), here.task("d"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
        signal.signal(signal.SIGXFSZ, handler)
    assert outcome.event == "success"
    assert here.console.count("the journal ends here") == 1
    assert [r["task"] for r in here.journal if r["type"] == "task_end"] == ["a"]


@pytest.mark.slow
def test_killed_and_run_again(there: Any, here: Any) -> None:
    """After KILL at any moment, a second run ends like one that was never disturbed."""
    chance = random.Random(7)
    names = [f"f{i}" for i in range(12)]
    for turn in range(8):
        there.folder = here.folder / str(turn)
        there.folder.mkdir()
        steps = [here.task(n, module="state", args={"path": str(there.folder / n)}) for n in names]
        there.start(*steps)
        # after some number of lines, and whatever happens meanwhile
        there.line(f" {names[chance.randrange(len(names))]}:")
        there.process.kill()
        there.end()
        there.close()
        assert there.start(*steps).end() == 0
        assert all((there.folder / n).exists() for n in names)
        # on a busy machine the first run may have ended before it was killed
        assert {r["outcome"] for r in there.of("phase_end")} == {"success"}
        ends = there.of("task_end")[-len(names) :]
        assert [r["task"] for r in ends] == names
        assert {r["outcome"] for r in ends} <= {"ok", "changed"}
        assert "ok" in {r["outcome"] for r in ends}
        there.close()
        for line in (there.folder / "journal.jsonl").read_bytes().splitlines()[-5:]:
            json.loads(line)
