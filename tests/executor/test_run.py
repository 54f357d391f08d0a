"""Outcomes, kinds of failure, values, environment and exit codes, with real attempts."""

from __future__ import annotations

import pathlib
import resource
import subprocess
from typing import Any

import pytest

from pairun.executor import attempt
from pairun.module import Secret
from pairun.plan import Late

FAILURES = [
    ("raise Transient('broken', fault='platform')", "transient", "platform"),
    ("raise TimedOut('slow')", "timeout", "unknown"),
    ("raise Conflict('taken')", "conflict", "unknown"),
    ("raise Permanent('no', fault='user')", "permanent", "user"),
    ("raise Failure('odd')", "internal", "unknown"),
    ("raise ZeroDivisionError('x')", "internal", "unknown"),
    ("import sys; sys.exit(0)", "internal", "unknown"),
    ("raise KeyboardInterrupt", "internal", "unknown"),
    ("import os; os._exit(3)", "internal", "unknown"),
    ("import os; os.kill(os.getpid(), 9)", "internal", "unknown"),
    ("result = Result(values={'x': Secret('abc')})", "internal", "unknown"),
    ("def f(): f()\nf()", "internal", "unknown"),
]


@pytest.mark.parametrize(("code", "kind", "fault"), FAILURES)
def test_kinds_of_failure(here: Any, code: str, kind: str, fault: str) -> None:
    """Every way to fail has a kind and a fault, and fails the phase."""
    outcome = here.run(here.task(code=code))
    assert (outcome.event, outcome.failed, outcome.exit_code) == ("failure", "a", 1)
    assert here.end()["outcome"] == "failed"
    assert (here.end()["kind"], here.end()["fault"]) == (kind, fault)


def test_outcomes_of_a_state_module(here: Any, tmp_path: pathlib.Path) -> None:
    """What is not there is made and looked at again; what is there is left alone."""
    task = here.task(module="state", args={"path": str(tmp_path / "x")})
    here.run(task)
    assert here.end()["outcome"] == "changed"
    steps = (tmp_path / "x.steps").read_text().split()
    assert steps[::2] == ["probe", "apply", "probe"]
    assert len(set(steps[1::2])) == 1  # one process
    here.events.clear()
    here.run(task)
    assert here.end()["outcome"] == "ok"
    assert (here.end()["message"], here.results["a"]["changed"]) == ("it is there", False)


def test_a_change_that_does_not_hold(here: Any, tmp_path: pathlib.Path) -> None:
    """A second probe that still sees a change is a failure of the platform's."""
    here.run(here.task(module="state", args={"path": str(tmp_path / "x"), "holds": False}))
    assert (here.end()["kind"], here.end()["fault"]) == ("internal", "platform")
    assert "did not hold: make it" in here.end()["message"]


def test_a_module_that_does_not_verify(here: Any, tmp_path: pathlib.Path) -> None:
    """With `verify = False` there is no second probe."""
    here.run(here.task(module="careless", args={"path": str(tmp_path / "x"), "holds": False}))
    assert here.end()["outcome"] == "changed"
    assert (tmp_path / "x.steps").read_text().split()[::2] == ["probe", "apply"]


def test_a_check_runs_once(here: Any) -> None:
    """A check module looks once, and is never said to have changed anything."""
    here.run(here.task(code="print('looked'); result = Result(message='well')"))
    assert here.lines() == ["looked"]
    assert (here.end()["outcome"], here.end()["message"]) == ("ok", "well")


def test_skipped(here: Any) -> None:
    """A condition that is false and a module that has nothing to do skip the task."""
    here.run(here.task("a", "1/0", when=False), here.task("b", "raise Skip('nothing to look at')"))
    assert [e["outcome"] for e in here.of("task_end")] == ["skipped", "skipped"]
    assert here.of("attempt_begin", "a") == []
    assert here.results["b"]["message"] == "nothing to look at"


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


def test_an_error_no_one_foresaw(here: Any) -> None:
    """Its trace stands in the journal, and people see one sentence."""
    here.run(here.task(code="def deep(): raise ZeroDivisionError('oops')\ndeep()"))
    (record,) = [r for r in here.journal if r["type"] == "attempt_end"]
    assert "in deep" in record["trace"]
    assert "Traceback" not in here.console
    assert "Look raised ZeroDivisionError: oops (" in here.console


def test_a_killed_attempt_says_how(here: Any) -> None:
    """A child that vanishes is told by its status, and KILL hints at the memory."""
    here.run(here.task("a", "import os; os.kill(os.getpid(), 9)", failure_policy="ignore"),
             here.task("b", "import os; os._exit(7)", failure_policy="ignore"))  # fmt: skip
    assert here.end("a")["message"] == "the attempt was killed by SIGKILL and left no result"
    assert "memory" in here.end("a")["hint"]
    assert here.end("b")["message"] == "the attempt ended with 7 and left no result"


# --- values --------------------------------------------------------------------------------------


def late(expression: str) -> Late:
    """A value of which only the run can tell."""
    return Late(template=expression, because="a result", expression=True)


def test_results_reach_later_tasks(here: Any) -> None:
    """Arguments and conditions are resolved when the task begins, and keep their types."""
    here.run(
        here.task("a", "result = Result(values={'n': 41, 'go': True})"),
        here.task("b", args={"code": "print(number + 1)", "number": late("results['a']['values']['n']")}),
        here.task("c", "print('went')", when=late("results['a']['values']['go']")),
        here.task("d", "1/0", when=late("not results['a']['values']['go']")),
    )  # fmt: skip
    assert here.lines() == ["42", "went"]
    assert here.end("d")["outcome"] == "skipped"


def test_a_large_result(here: Any) -> None:
    """A result larger than a pipe holds comes through whole."""
    here.run(here.task(code="result = Result(values={'x': 'ä' * 1_000_000})"))
    assert here.results["a"]["values"] == {"x": "ä" * 1_000_000}


def test_bad_input_found_late(here: Any) -> None:
    """A late value that does not fit is bad input, not an error of ours."""
    outcome = here.run(
        here.task(args={"code": "", "number": late("'many'")}, exit_codes={"permanent": 252})
    )
    assert (here.end()["kind"], here.end()["fault"]) == ("permanent", "user")
    assert outcome.exit_code == 252
    assert here.of("attempt_begin") == []


def test_a_late_value_that_breaks(here: Any) -> None:
    """An error while resolving is internal, has its trace in the journal, and handlers run."""
    handler = here.task("undo", "print('undone')", events=("failure",))
    outcome = here.run(
        here.task("a", on_exit=(handler,)),
        here.task("b", args={"code": late("1/0")}),
    )
    assert (outcome.failed, here.end("b")["kind"]) == ("b", "internal")
    assert here.lines("undo") == ["undone"]
    assert "ZeroDivisionError" in here.end("b")["trace"]
    assert "Traceback" not in here.console


# --- environment ---------------------------------------------------------------------------------

SHOW = "print(*(ctx.env.get(n) for n in ('A', 'B', 'C')))"


def test_exports_reach_later_tasks(here: Any) -> None:
    """What a task exports is in the environment of later tasks; None removes a variable."""
    here.env |= {"A": "old", "B": "stays"}
    here.run(
        here.task("a", "result = Result(environment={'A': None, 'C': 'new'})"),
        here.task("b", SHOW),
    )
    assert here.lines("b") == ["None stays new"]
    assert here.exports == {"A": None, "C": "new"}


def test_environment_of_one_task(here: Any) -> None:
    """A task's own variables are text as a shell would write them, and stay its own."""
    environment = {"A": True, "B": 3, "C": late("1.5")}
    here.run(here.task("a", SHOW, environment=environment), here.task("b", SHOW))
    assert here.lines() == ["true 3 1.5", "None None None"]


def test_environment_takes_no_lists(here: Any) -> None:
    """A variable that is no text is bad input."""
    here.run(here.task(environment={"A": late("[1]")}))
    assert (here.end()["kind"], here.end()["fault"]) == ("permanent", "user")


def test_a_secret_is_revealed_to_the_process_only(here: Any, tmp_path: pathlib.Path) -> None:
    """A secret variable reaches the task, and stands in no event, journal or output."""
    here.secrets = ["s3cr3t-s3cr3t"]
    code = (
        "assert ctx.env['A'] == 's3cr3t-s3cr3t'; print(ctx.env['A']); "
        "raise Permanent('it was ' + ctx.env['A'], hint=ctx.env['A'])"
    )
    here.run(here.task(code=code, environment={"A": Secret("s3cr3t-s3cr3t")}))
    assert here.end()["kind"] == "permanent"
    assert here.lines() == ["******"]
    for path in ("journal.jsonl", "console"):
        text = (tmp_path / path).read_text()
        assert "******" in text
        assert "s3cr3t" not in text
    assert "s3cr3t" not in str(here.of("output"))


# --- exit codes ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("phase", "default"), [("init", 1), ("runtime", 255)])
def test_exit_codes(here: Any, phase: str, default: int) -> None:
    """The kind of the failure chooses the exit code; what is not mapped has the phase's."""
    codes = {"conflict": 253}
    conflict = here.task(code="raise Conflict('taken')", exit_codes=codes)
    assert here.run(conflict, phase=phase).exit_code == 253
    assert here.run(here.task(code="1/0", exit_codes=codes), phase=phase).exit_code == default
    assert here.run(here.task(), phase=phase).exit_code == 0


# --- what goes wrong around an attempt -----------------------------------------------------------


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
