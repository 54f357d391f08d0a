"""What an attempt does, and what becomes of a module that hands over what it may not."""

from __future__ import annotations

import pathlib
from typing import Any

import pytest

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


def test_an_error_no_one_foresaw(here: Any) -> None:
    """Its trace stands in the journal, and people see one sentence."""
    here.run(here.task(code="def deep(): raise ZeroDivisionError('oops')\ndeep()"))
    (record,) = [r for r in here.journal if r["type"] == "attempt_end"]
    assert "in deep" in record["trace"]
    assert "Traceback" not in here.console
    assert "Look raised ZeroDivisionError: oops (" in here.console
    assert "`pairun report` shows its trace" in here.console


def test_a_large_result(here: Any) -> None:
    """A result larger than a pipe holds comes through whole."""
    here.run(here.task(code="result = Result(values={'x': 'ä' * 1_000_000})"))
    assert here.results["a"]["values"] == {"x": "ä" * 1_000_000}


HERE = pathlib.Path(__file__).parent
LOOK = str(HERE / "modules" / "look.py")


BAD = [
    ("ctx.progress('half way'); ctx.last_progress()", "bytes must be a whole number"),
    ("ctx.progress('half way')", "bytes must be a whole number"),
    ("ctx.progress(1, total='2')", "total must be a whole number"),
    ("ctx.progress(1, file=3)", "file must be text"),
    ("ctx.progress(-1)", "bytes must be a number from 0"),
    ("result = Result(environment={'A': 3})", "environment.A must be text or None"),
    ("result = Result(environment={'A': 'x\\0y'})", "environment.A must not hold a NUL"),
    ("result = Result(environment={'A=B': 'x'})", "without '=' and NUL, it has 'A=B'"),
    ("result = Result(environment={3: 'x'})", "without '=' and NUL, it has 3"),
    ("result = Result(environment={'A': '\\ud800'})", "text that UTF-8 can encode"),
    ("result = Result(environment=3)", "environment must be a mapping"),
    ("result = Result(values=3)", "values must be a mapping"),
    ("result = Result(values={'x': Secret('abc')})", "values.x must be plain JSON data"),
    ("result = Result(values={'x': float('inf')})", "values.x must hold finite numbers"),
    ("x = []; x.append(x); result = Result(values={'x': x})", "nested at most"),
    ("result = Result(values={'x': 'x' * (17 << 20)})", "at most 16 MiB"),
    ("result = Result(message=3)", "message must be text"),
    ("result = 'done'", "check() must return a Result or None, it returned a str"),
    ("result = False", "check() must return a Result or None, it returned a bool"),
    ("raise Permanent(3)", "message must be text"),
    ("raise Permanent('x', fault='mine')", "fault must be one of"),
    ("raise Permanent('x', hint=3)", "hint must be text"),
    ("raise Transient('x', retry_after_s='5')", "retry_after_s must be a number"),
    ("raise Transient('x', retry_after_s=float('nan'))", "retry_after_s must be a finite number"),
    ("e = Permanent('x'); e.kind = 'oops'; raise e", "kind must be one of"),
    ("raise Skip(3)", "message must be text"),
]


@pytest.mark.parametrize(("code", "words"), BAD)
def test_a_bad_field(here: Any, code: str, words: str) -> None:
    """It is an internal failure that names the field, the module's file and the line."""
    handler = here.task("undo", "print('undone')", events=("success",))
    task = here.task(code=code, failure_policy="ignore", on_exit=(handler,))
    assert here.run(task, here.task("b")).event == "success"
    end = here.end()
    assert (end["outcome"], end["kind"]) == ("ignored", "internal")
    assert "Look returned an invalid result: " in end["message"]
    assert words in end["message"]
    assert f"({LOOK}, line " in end["message"]
    assert here.lines("undo") == ["undone"]
    assert [r["outcome"] for r in here.journal if r["type"] == "task_end"] == [
        "ignored",
        "ok",
        "ok",
    ]


@pytest.mark.parametrize(
    ("verdict", "words"),
    [
        ("None", "plan() must return a Verdict, it returned None"),
        ("'no_change'", "plan() must return a Verdict, it returned a str"),
        ("no_change(3)", "the reason of a Verdict must be text"),
        ("will_change(None)", "the reason of a Verdict must be text"),
    ],
)
def test_a_bad_verdict(here: Any, verdict: str, words: str) -> None:
    """A `plan` that returns no verdict is named with its line."""
    here.run(here.task(module="judge", args={"verdict": verdict}))
    assert here.end()["kind"] == "internal"
    assert words in here.end()["message"]
    assert "judge.py, line 25)" in here.end()["message"]


def write(data: str) -> str:
    """Code that writes past our own functions into the pipe of the report."""
    return f"data = {data}\n(send,) = ctx._emit_progress.__closure__\nsend.cell_contents(data)\n"


@pytest.mark.parametrize(
    "data",
    [
        r"b'hello\n'",
        r"b'[' * 100_000 + b'\n'",
        r"""b'{"Report": {"outcome": "great"}}\n'""",
        r"""b'{"Progress": {"bytes": "x", "total": null, "file": ""}}\n'""",
        "b'x' * (18 << 20)",
    ],
)
def test_what_is_written_past_us(here: Any, data: str) -> None:
    """A process that writes garbage into our pipe fails its task and nothing else."""
    assert here.run(here.task(code=write(data)), phase="init").event == "failure"
    assert here.end()["kind"] == "internal"
    assert "Look returned an invalid result: " in here.end()["message"]
    assert f"({LOOK}, line " in here.end()["message"]


def test_a_report_that_is_cut_off(here: Any) -> None:
    """Half a report of a process that vanished is none."""
    code = write("""b'{"Report": {"outcome": "ok"'""") + "import os; os._exit(0)"
    here.run(here.task(code=code))
    assert here.end()["message"] == "the attempt ended with 0 and left no result"


def test_an_exception_without_a_message(here: Any) -> None:
    """An error whose text cannot be made is told by its type."""
    code = (
        "class Odd(Exception):\n"
        "    def __str__(self): raise ValueError\n"
        "raise Odd"
    )  # fmt: skip
    here.run(here.task(code=code))
    assert here.end()["kind"] == "internal"
    assert "Look raised Odd (" in here.end()["message"]
