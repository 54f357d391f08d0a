"""The recap of a run as text."""

from __future__ import annotations

import io
import json
import pathlib
import re
from typing import Any

import pytest

from pairun.report.console import Console
from pairun.report.journal.finding import JournalFile, read_instance
from pairun.report.journal.history import InstancePast
from pairun.report.paper import paper
from pairun.report.recap import MOST_ROWS, InstanceReport, PhaseReport, RunReport, print_run
from pairun.secrets.vault import Vault


def _instance(label: str, past: InstancePast | None = None, **more: Any) -> InstanceReport:
    phases = {"init": PhaseReport(code=0, seconds=1.2), "command": PhaseReport(code=0, seconds=61)}
    past = past or InstancePast(label=label, journal=None)
    return InstanceReport(**{"past": past, "stopped": "", **phases, **more})


def _past(folder: pathlib.Path, label: str, *records: Any) -> InstancePast:
    """What a journal with these records says, which a cut line ends."""
    journal = folder / f"{label}.jsonl"
    lines = "".join(json.dumps({"schema": 1, "seconds": 1, **r}) + "\n" for r in records)
    journal.write_text(lines + '{"schema')
    return read_instance(JournalFile(label=label, journal=str(journal)))


def _phase_end(phase: str, outcome: str = "success", **more: Any) -> dict[str, Any]:
    code = int(outcome == "failure")
    return {"type": "phase_end", "phase": phase, "outcome": outcome, "exit_code": code, **more}


def _render(*instances: InstanceReport, **more: Any) -> list[str]:
    report = RunReport(
        **{
            "namespaces": True,
            "because": "",
            "images": ["example.com/team/image:1"],
            "instances": instances,
            "succeeded": True,
            "exit_code": 0,
            "verdict": "all instances have ended",
            "workdir": "pairun-run/x",
            **more,
        }
    )
    stream = io.StringIO()
    print_run(report, paper(stream), Vault(["open-sesame"]))
    return stream.getvalue().splitlines()


def test_first_line() -> None:
    """The first line says the mode, and that the image was not used."""
    lines = _render(_instance("w-0"), images=["a", "b", "a"])
    assert lines[0] == ("ran with this machine's programs, not in images a, b")
    lines = _render(_instance("w-0"), namespaces=False, because="not permitted")
    assert "no namespaces (not permitted), so paths were" in " ".join(" ".join(lines).split())


def test_columns() -> None:
    """Instances stand below each other, with codes and times."""
    lines = _render(
        _instance("worker-0"),
        _instance("ps-0", command=None, stopped="another instance failed"),
        succeeded=False,
        exit_code=7,
        verdict="worker-1 ended with 7",
    )
    assert lines[1:] == [
        "instance  ok  changed  skipped  failed  init            command",
        "worker-0   0        0        0       0  exit 0 (1.2 s)  exit 0 (1m 1s)",
        "ps-0       0        0        0       0  exit 0 (1.2 s)  -",
        "ps-0  stopped: another instance failed",
        "      the command was not started",
        "failed: worker-1 ended with 7",
        "exit code 7",
        "logs: pairun-run/x/INSTANCE/output.log, more in pairun-run/x/INSTANCE/pai/logs",
        "as a page: pairun report --html report.html pairun-run/x",
    ]


@pytest.mark.parametrize("width", [58, 60, 70, 73])
def test_a_narrow_terminal_breaks_no_time(width: int) -> None:
    """Where a row is too wide, its times stand whole below the exit codes; else beside them."""
    command = PhaseReport(code=127, seconds=0.8)
    stream = io.StringIO()
    console = paper(stream)
    console.width = width
    report = RunReport(
        namespaces=True, because="", images=["a"], succeeded=False, exit_code=127, verdict="v",
        instances=[_instance("worker-0", command=command)], workdir="x",
    )  # fmt: skip
    print_run(report, console, Vault())
    lines = [line for line in stream.getvalue().splitlines() if "exit 127 " in line or "(" in line]
    assert all(len(line) <= width for line in lines)
    text = " ".join(" ".join(lines).split())
    assert "(1.2 s) (800 ms)" in text or "exit 0 (1.2 s) exit 127 (800 ms)" in text
    assert not any(line.split() == ["s)"] for line in stream.getvalue().splitlines())


def test_a_command_that_failed_is_counted() -> None:
    """The command is no task of the journal, but a row of a failed instance shows a failure."""
    failed, stopped = PhaseReport(code=1, seconds=1), PhaseReport(code=143, seconds=1)
    lines = _render(
        _instance("w-0", command=failed), _instance("w-1", command=stopped, stopped="Ctrl-C")
    )
    assert [line.split()[4] for line in lines[2:4]] == ["1", "0"]


def test_a_job_that_succeeds_although_instances_failed() -> None:
    """The line of the verdict says both; one without failures says neither."""
    bad = PhaseReport(code=2, seconds=1)
    verdict = "1 of 1 instances of ps succeeded"
    lines = _render(_instance("ps-0"), _instance("w-0", command=bad), verdict=verdict)
    assert f"succeeded by its completion policy, although 1 instance failed: {verdict}" in lines
    assert f"succeeded: {verdict}" in _render(_instance("ps-0"), verdict=verdict)


def test_notes_and_width(tmp_path: pathlib.Path) -> None:
    """What healed, failed and ran at exit is told, and no line is longer than 100 columns."""
    records: list[dict[str, Any]] = [
        {"type": "attempt_end", "task": "clone", "outcome": "failed", "attempt": 1},
        {"type": "attempt_end", "task": "clone", "outcome": "changed", "attempt": 3},
        {"type": "task_end", "task": "clone", "outcome": "changed"},
        {"type": "task_end", "task": "fine", "outcome": "ok"},
        {"type": "task_end", "task": "last", "outcome": "failed",
         "message": "it did not work at all " * 10},
        {"type": "task_end", "task": "tidy", "outcome": "ok", "handler": True},
    ]  # fmt: skip
    for label in ("w-0", "a_role_with_a_name_that_takes_most_of_the_room_there_is_on_a_line-12"):
        lines = _render(_instance(label, _past(tmp_path, label, *records)))
        text = " ".join(" ".join(lines).split())
        assert re.search(r" 2 +1 +0 +1 ", text)
        assert "clone succeeded at attempt 3" in text
        assert "last failed: it did" in text
        assert "exit handlers: tidy ok" in text
        assert "fine" not in text
        assert max(map(len, lines)) <= 100


def test_times_are_those_of_the_report(tmp_path: pathlib.Path) -> None:
    """The journal's, if it has them; a job may write anything there."""
    past = _past(
        tmp_path, "w-0",
        _phase_end("init", seconds=0.0178),
        {"type": "command_end", "seconds": 60, "exit_code": 0},
        {"type": "command_end", "seconds": "long"},
        _phase_end("runtime", seconds=60.5),
    )  # fmt: skip
    assert _render(_instance("w-0", past))[2].endswith("exit 0 (17.8 ms)  exit 0 (1 m)")
    assert _render(_instance("w-0"))[2].endswith("exit 0 (1.2 s)  exit 0 (1m 1s)")


def test_a_guess_is_told_as_one(tmp_path: pathlib.Path) -> None:
    """Of an exit code alone nobody knows what happened."""
    why = {"type": "diagnosis", "class": "host_oom", "headline": "memory is full"}
    sure, unsure = (
        _instance(
            f"w-{n}",
            _past(tmp_path, f"w-{n}", {"type": "phase_begin", "phase": "runtime", "time": n},
                  {**why, "confidence": sure}, _phase_end("runtime", "failure")),
        )
        for n, sure in enumerate((0.9, 0.66), 1)
    )  # fmt: skip
    lines = _render(sure, unsure)
    assert any(line.endswith("  memory is full (host_oom)") for line in lines)
    assert any(line.endswith("  probably memory is full (host_oom)") for line in lines)
    assert "first to fail: w-1" in lines
    assert sum("memory is full" in line for line in lines) == 2


def test_an_instance_that_failed_by_itself_is_not_called_stopped(tmp_path: pathlib.Path) -> None:
    """The signal to stop came when its command had failed: the journal's outcome decides."""
    instances = []
    for n, outcome in enumerate(("failure", "failure", "signal")):
        past = _past(
            tmp_path, f"w-{n}",
            {"type": "phase_begin", "phase": "runtime", "time": n + 1},
            {"type": "diagnosis", "class": "user_code_error", "headline": f"bug {n}"},
            _phase_end("runtime", outcome),
        )  # fmt: skip
        instances.append(_instance(f"w-{n}", past, stopped="another instance failed" if n else ""))
    lines = _render(*instances, succeeded=False)
    notes = [line.partition("  ")[2] for line in lines[5:8]]
    assert notes == [
        "bug 0 (user_code_error)",
        "bug 1 (user_code_error)",
        "stopped: another instance failed",
    ]
    assert "first to fail: w-0" in lines
    assert sum("bug 0" in line for line in lines) == 1


def test_what_a_failed_task_said_last(tmp_path: pathlib.Path) -> None:
    """Where a failure's message is only an exit code, the last line that the task printed tells."""
    attempt = {"type": "attempt_end", "outcome": "failed"}
    failed = {"type": "task_end", "outcome": "failed"}
    past = _past(
        tmp_path, "w-0",
        {**attempt, "task": "load", "attempt": 1, "output": ["an old line"]},
        {**attempt, "task": "load", "attempt": 2, "output": ["begin", "no such\033 table", " "]},
        {**failed, "task": "load", "message": "the script ended with exit code 7"},
        {**attempt, "task": "clone", "attempt": 1, "output": ["noise"]},
        {**failed, "task": "clone", "message": "the server refuses"},
        {**failed, "task": "none", "message": "exit code 1"},
    )  # fmt: skip
    text = " ".join(" ".join(_render(_instance("w-0", past))).split())
    assert (
        "load failed: the script ended with exit code 7 (no such\N{REPLACEMENT CHARACTER} table)"
        in text
    )
    assert "clone failed: the server refuses none failed" in text
    assert "none failed: exit code 1 " in text


def test_many_instances_that_ended_alike_share_a_row(tmp_path: pathlib.Path) -> None:
    """Of fifty instances, the one that failed has a row of its own; the longest time counts."""
    many = [
        _instance(f"w-{n}", command=PhaseReport(code=3 * (n == 7), seconds=n / 10 + 1))
        for n in range(MOST_ROWS * 4)
    ]
    lines = _render(*many)
    assert [re.sub(" +", " ", line) for line in lines[2:4]] == [
        f"w-0 +{MOST_ROWS * 4 - 2} 0 0 0 0 exit 0 (≤ 1.2 s) exit 0 (≤ 5.7 s)",
        "w-7 0 0 0 1 exit 0 (1.2 s) exit 3 (1.7 s)",
    ]
    assert len(lines) < 10


def test_a_job_cannot_harm_the_recap_by_its_journal(tmp_path: pathlib.Path) -> None:
    """Fields of another type, escape codes, markup, directions of text and secrets are harmless."""
    foreign = "[bold]\x1b[2Jopen-sesame\N{RIGHT-TO-LEFT OVERRIDE}"
    records: list[Any] = [
        {"type": "task_end"}, {"type": 7}, {"type": "diagnosis", "confidence": "x", "time": []},
        {"type": "task_end", "task": foreign, "outcome": "failed", "message": foreign},
        {"type": "task_end", "attempts": "many", "outcome": {}, "output": 3},
    ]  # fmt: skip
    labels = ("w-0", "w-1")
    lines = _render(*(_instance(x, _past(tmp_path, x, *records)) for x in labels))
    text = "\n".join(lines)
    assert "[bold]\N{REPLACEMENT CHARACTER}[2J******\N{REPLACEMENT CHARACTER} failed" in text
    assert text.replace("\n", "").isprintable()


@pytest.mark.parametrize(
    ("kind", "attempts", "of", "says"),
    [
        ("transient", 1, 1, "transient: no retries"),
        ("transient", 3, 3, "transient after 3 attempts"),
        ("conflict", 1, 4, "conflict: not retried"),
        ("permanent", 1, 4, "permanent"),
        ("permanent", 2, 4, "permanent after 2 attempts"),
        ("transient", 0, 4, "transient"),
        # whether a script that ended with 1 fails again is not known
        ("script", 1, 1, "no retries"),
        ("script", 1, 4, "not retried"),
        ("script", 4, 4, "after 4 attempts"),
    ],
)
def test_a_failure_says_whether_it_was_tried_again(
    kind: str, attempts: int, of: int, says: str
) -> None:
    """The console tells the kind of a failure in a way that promises no retry that was not made."""
    stream = io.StringIO()
    code = {"kind": "transient", "exit_code": 1} if kind == "script" else {"kind": kind}
    Console(stream, Vault())(
        {"type": "task_end", "task": "t", "name": "T", "outcome": "failed", "seconds": 1,
         "message": "no", "fault": "user", "attempts": attempts, "of": of, **code}
    )  # fmt: skip
    assert f"no [{says}; fault: user]" in stream.getvalue()
