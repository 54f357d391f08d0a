"""Processes of attempts: how they start and end, and what is left of those that were stopped."""

from __future__ import annotations

import os
import pathlib
import resource
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from pairun.executor import attempt
from pairun.executor.attempt import AttemptProcess
from pairun.plan import Late


def late(expression: str) -> Late:
    """A value that is known at run time only."""
    return Late(template=expression, because="a result", expression=True)


def test_a_killed_attempt_says_how(here: Any) -> None:
    """A child that vanishes is told by its status, and KILL hints at the memory."""
    here.run(here.task("a", "import os; os.kill(os.getpid(), 9)", failure_policy="ignore"),
             here.task("b", "import os; os._exit(7)", failure_policy="ignore"))  # fmt: skip
    assert here.end("a")["message"] == "the attempt was killed by SIGKILL and left no result"
    assert "memory" in here.end("a")["hint"]
    assert here.end("b")["message"] == "the attempt ended with 7 and left no result"


def test_no_descriptors_left(here: Any) -> None:
    """An attempt that cannot be started fails as the platform's and may be tried again."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    handler = here.task("undo", "print('undone')", events=("failure",))
    original = here.of

    def starve(late_value: Any, *_: Any) -> Any:
        resource.setrlimit(resource.RLIMIT_NOFILE, (5, hard))
        return late_value.template

    try:
        here.run(here.task("a", on_exit=(handler,)),
                 here.task("b", args={"code": late("pass")}, retries=1, delay_s=0.0),
                 resolve=starve, handlers=False)  # fmt: skip
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert [e["outcome"] for e in original("attempt_end", "b")] == ["failed", "failed"]
    assert (here.end("b")["kind"], here.end("b")["fault"]) == ("transient", "platform")


def test_a_module_that_closes_everything(here: Any) -> None:
    """A module that closes its descriptors keeps nobody busy, and its end is noticed."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    here.run(here.task(code="import os, time; os.closerange(1, 100); time.sleep(0.5); os._exit(0)"))
    assert here.end()["kind"] == "internal"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_utime - before < 0.25


def test_a_child_that_somebody_else_waited_for(here: Any) -> None:
    """A library that waits for every child of this process takes nothing from us but the waiting."""
    gone = subprocess.Popen(["true"])
    gone.wait()
    attempt._LEAVING.append(gone.pid)
    assert here.run(here.task(), here.task("b")).event == "success"
    assert gone.pid not in attempt._LEAVING


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
    check = AttemptProcess.check_time
    monkeypatch.setattr(AttemptProcess, "check_time", lambda self, _: check(self, 0.3))
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
    stop = AttemptProcess.stop
    monkeypatch.setattr(AttemptProcess, "stop", lambda self, why, _=0.0: stop(self, why, 0.1))
    outcome = here.run(here.task(code="import time; time.sleep(60)", timeout_s=0.1))
    real(stuck[0], 0)
    assert outcome.event == "failure"
    assert here.end()["kind"] == "timeout"
    assert "cannot be killed" in here.end()["message"]


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
