"""Attempts, waits, limits, and what is left of an attempt that was stopped."""

from __future__ import annotations

import os
import pathlib
import statistics
import time
from collections.abc import Callable
from typing import Any

import pytest

from pairun.executor.attempt import Attempt
from pairun.executor.plan import Task
from pairun.executor.run import MAX_DELAY_S, MAX_RETRY_AFTER_S, retry_delay

COUNT = """
import os
path = os.path.join(ctx.pai_dir, 'count')
n = os.path.getsize(path) + 1 if os.path.exists(path) else 1
open(path, 'a').write('x')
"""


def test_retries_are_further_attempts(here: Any) -> None:
    """`retries: 2` is three attempts, each with a begin and an end."""
    here.run(here.task(code="raise Transient('x')", retries=2, delay_s=0.0))
    assert [(e["attempt"], e["of"]) for e in here.of("attempt_begin")] == [(1, 3), (2, 3), (3, 3)]
    assert [e["attempt"] for e in here.of("attempt_end")] == [1, 2, 3]
    assert (here.end()["attempts"], here.end()["outcome"]) == (3, "failed")


def test_a_retry_heals(here: Any) -> None:
    """An attempt that succeeds ends the task, and messages say which one it was."""
    code = COUNT + "if n < 3: raise Transient('not yet')"
    outcome = here.run(here.task(code=code, retries=5, delay_s=0.001))
    assert (outcome.event, here.end()["attempts"]) == ("success", 3)
    assert [w["because"] for w in here.of("wait")] == [
        "attempt 1 of 6 failed (transient): not yet",
        "attempt 2 of 6 failed (transient): not yet",
    ]
    assert "attempt 3 of 6)" in here.console


@pytest.mark.parametrize(
    ("retry_on", "kind", "attempts"),
    [
        (None, "Transient", 2), (None, "TimedOut", 2), (None, "Conflict", 2),
        (None, "Permanent", 1), (None, "Failure", 1),
        (("permanent",), "Permanent", 2), (("permanent",), "Transient", 1), ((), "Transient", 1),
    ],
)  # fmt: skip
def test_which_kinds_are_tried_again(
    here: Any, retry_on: tuple[str, ...] | None, kind: str, attempts: int
) -> None:
    """By default what may heal is tried again; `retry_on` chooses."""
    more = {} if retry_on is None else {"retry_on": retry_on}
    here.run(here.task(code=f"raise {kind}('x')", retries=1, delay_s=0.0, **more))
    assert here.end()["attempts"] == attempts


def test_delays_have_full_jitter() -> None:
    """Every delay lies between nothing and the doubled base, evenly, and under five minutes."""
    task = Task(id="a", name="A", module="look", args={}, delay_s=2.0)
    for attempts in (1, 2, 5, 8, 9, 40, 5000):
        longest = min(MAX_DELAY_S, 2.0 * 2.0 ** min(attempts - 1, 20))
        delays = [retry_delay(task, attempts) for _ in range(4000)]
        assert min(delays) >= 0
        assert max(delays) <= longest <= MAX_DELAY_S
        assert statistics.mean(delays) == pytest.approx(longest / 2, rel=0.06)
        assert min(delays) < longest * 0.02 < longest * 0.98 < max(delays)


def test_the_server_decides() -> None:
    """A Retry-After wins over the computed delay; nonsense in it is bounded."""
    task = Task(id="a", name="A", module="look", args={}, delay_s=200.0)
    assert retry_delay(task, 9, 0.25) == 0.25
    assert retry_delay(task, 1, 1e9) == MAX_RETRY_AFTER_S
    assert retry_delay(task, 1, -5.0) == 0.0


def test_retry_after_of_a_module(here: Any) -> None:
    """The wait between two attempts is what the failure asked for."""
    here.run(here.task(code="raise Transient('x', retry_after_s=0.05)", retries=1, delay_s=100.0))
    assert [w["seconds"] for w in here.of("wait")] == [0.05]


def test_the_deadline_ends_the_attempts(here: Any) -> None:
    """No attempt begins after the task's deadline, and the message says why."""
    code = "raise Transient('x', retry_after_s=60)"
    here.run(here.task(code=code, retries=5, deadline_s=20.0))
    assert here.end()["attempts"] == 1
    assert here.end()["message"] == (
        "x (no further attempt: the next would begin after the task's deadline of 20s)"
    )


def test_the_deadline_ends_an_attempt(here: Any) -> None:
    """The deadline of a task bounds the attempt that runs, too."""
    here.run(
        here.task(code="ctx.log('up'); import time; time.sleep(60)", deadline_s=0.3, retries=3)
    )
    assert (here.end()["kind"], here.end()["attempts"]) == ("timeout", 1)
    assert here.end()["seconds"] < 5


def test_an_attempt_that_timed_out_is_tried_again(here: Any) -> None:
    """A timeout ends one attempt; the next may succeed."""
    code = COUNT + "import time\nif n == 1: time.sleep(60)"
    outcome = here.run(here.task(code=code, timeout_s=0.3, retries=1, delay_s=0.0))
    assert (outcome.event, here.end()["attempts"]) == ("success", 2)
    (wait,) = here.of("wait")
    assert "attempt 1 of 2 failed (timeout): it was stopped after" in wait["because"]


# --- what is left -----------------------------------------------------------------------------------

FAMILY = """
import os, signal, subprocess, sys
deaf = [sys.executable, '-c', '''
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if len(sys.argv) < 3: subprocess.Popen([sys.executable, '-c', sys.argv[1], sys.argv[1], 'x'])
print('pid', os.getpid(), flush=True)
time.sleep(60)
''']
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print('pid', os.getpid(), flush=True)
subprocess.run([*deaf, deaf[2]])
"""


def pids(here: Any) -> list[int]:
    """The processes that said who they are."""
    return [int(line.split()[1]) for line in here.lines() if line.startswith("pid ")]


def test_what_ignores_term_is_killed(
    here: Any, gone: Callable[[int], bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After TERM comes KILL, for the child and for everything it started."""
    check = Attempt.check_time
    monkeypatch.setattr(Attempt, "check_time", lambda self, _: check(self, 0.3))
    here.run(here.task(code=FAMILY, timeout_s=1.5))
    assert here.end()["kind"] == "timeout"
    assert len(pids(here)) == 3
    assert all(gone(pid) for pid in pids(here))


def test_a_stopped_program_may_tidy_up(here: Any) -> None:
    """TERM reaches the programs of an attempt, and they have time before the KILL."""
    script = "trap 'sleep 0.3; echo tidied; exit' TERM; echo up; while :; do sleep 0.05; done"
    here.run(here.task(module="cmd", args={"script": script}, timeout_s=0.5))
    assert here.end()["kind"] == "timeout"
    assert (here.lines()[0], here.lines()[-1]) == ("up", "tidied")
    assert here.end()["seconds"] < 4


def test_nothing_of_a_failed_attempt_lives_on(here: Any, gone: Callable[[int], bool]) -> None:
    """What a failed attempt left in the background is gone before the next one begins."""
    script = "trap '' TERM; sleep 60 & echo pid $!; exit 1"
    here.run(here.task(module="cmd", args={"script": script}, retries=1, delay_s=0.0))
    assert len(pids(here)) == 2
    assert all(gone(pid) for pid in pids(here))


def test_the_background_of_a_success_lives_on(here: Any, lives: Callable[[int], bool]) -> None:
    """A server that a task started goes on, and what it prints later still appears."""
    go, done = here.folder / "go", here.folder / "done"
    os.mkfifo(go)
    os.mkfifo(done)
    server = (
        f"(read line < {go}; echo got $line; echo second; echo > {done}; exec sleep 60) & "
        "echo pid $!"
    )
    here.run(
        here.task("a", module="cmd", args={"script": server}),
        here.task("b", f"open({str(go)!r}, 'w').write('it\\n')"),
        here.task("c", f"open({str(done)!r}).read()"),
    )
    (pid,) = pids(here)
    try:
        assert lives(pid)
        assert here.lines("a")[1:] == ["got it", "second"]
    finally:
        os.kill(pid, 9)


@pytest.mark.parametrize("program", ["yes", "cat /dev/zero"])
def test_output_without_end_is_stopped_in_time(here: Any, program: str) -> None:
    """One who prints faster than we read keeps no limit from being held."""
    here.run(here.task(module="cmd", args={"script": program}, timeout_s=0.3))
    assert here.end()["kind"] == "timeout"
    assert here.end()["seconds"] < 5


def test_what_the_kernel_holds_is_given_up(here: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that no KILL ends is reported, and the phase goes on without it."""
    monkeypatch.setattr("pairun.executor.attempt.KILL_WAIT_S", 0.1)
    stuck: list[int] = []
    real = os.waitpid

    def waitpid(pid: int, options: int) -> tuple[int, int]:
        stuck.append(pid)
        return 0, 0

    monkeypatch.setattr("pairun.executor.attempt.os.waitpid", waitpid)
    stop = Attempt.stop
    monkeypatch.setattr(Attempt, "stop", lambda self, why, _=0.0: stop(self, why, 0.1))
    outcome = here.run(here.task(code="import time; time.sleep(60)", timeout_s=0.1))
    real(stuck[0], 0)
    assert outcome.event == "failure"
    assert here.end()["kind"] == "timeout"
    assert "cannot be killed" in here.end()["message"]


def test_waiting_costs_no_time_of_ours(here: Any) -> None:
    """While an attempt runs and while a task waits, the executor sleeps."""
    before = time.process_time()
    here.run(
        here.task("a", "import time; time.sleep(0.4)"),
        here.task("b", "raise Transient('x', retry_after_s=0.4)", retries=1),
    )
    assert time.process_time() - before < 0.2


def test_descriptors_do_not_leak(here: Any) -> None:
    """A task leaves no open file behind, whether it succeeds, fails, or is stopped."""
    here.run(here.task("a"))
    before = sorted(pathlib.Path("/proc/self/fd").iterdir())
    here.run(
        here.task("b"),
        here.task("c", "1/0", failure_policy="ignore"),
        here.task("d", "import time; time.sleep(60)", timeout_s=0.1, failure_policy="ignore"),
        here.task("e", "raise Transient('x')", retries=3, delay_s=0.0, failure_policy="ignore"),
    )
    assert sorted(pathlib.Path("/proc/self/fd").iterdir()) == before
