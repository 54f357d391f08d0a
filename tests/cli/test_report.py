"""``pairun report``: what it tells of any journal, whole or not."""

from __future__ import annotations

import io
import json
import os
import pathlib
import subprocess
import sys
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairun.errors import PairunError
from pairun.report.journal.blame import blame
from pairun.report.journal.historybuilding import phases_of
from pairun.report.journal.records import READ_BYTES, read_entries
from tests.effort import cases

Record = dict[str, Any]
BEGAN = 1_700_000_000.0


def begin(phase: str = "init", **more: Any) -> Record:
    return {"type": "phase_begin", "phase": phase, "pairun": "0.1.0", "tasks": 1, **more}


def end(phase: str = "init", code: int = 0, seconds: float = 10.0, **more: Any) -> Record:
    outcome = "success" if code == 0 else "failure"
    return {
        "type": "phase_end", "phase": phase, "outcome": outcome, "exit_code": code,
        "message": "", "seconds": seconds, **more,
    }  # fmt: skip


def starts(task: str, attempt: int = 1, **more: Any) -> Record:
    return {
        "type": "attempt_begin", "task": task, "name": task.title(), "module": "cmd",
        "attempt": attempt, "of": 3, "handler": False, **more,
    }  # fmt: skip


def tried(task: str, attempt: int = 1, outcome: str = "ok", seconds: float = 1.0, **more: Any) -> Record:  # fmt: skip
    return {
        "type": "attempt_end", "task": task, "attempt": attempt, "of": 3, "outcome": outcome,
        "seconds": seconds, **more,
    }  # fmt: skip


def ends(task: str, outcome: str = "ok", seconds: float = 1.0, **more: Any) -> Record:
    return {
        "type": "task_end", "task": task, "name": task.title(), "outcome": outcome, "attempts": 1,
        "of": 3, "seconds": seconds, "message": "", "handler": False, **more,
    }  # fmt: skip


def waits(task: str, seconds: float, because: str = "it failed") -> Record:
    return {"type": "wait", "task": task, "seconds": seconds, "because": because}


def lines(*records: Record, at: float = 0.0) -> str:
    """The records as a journal, one second after the other."""
    return "".join(
        json.dumps({"schema": 1, "time": BEGAN + at + n, **r}) + "\n" for n, r in enumerate(records)
    )


WHOLE = lines(begin(), starts("clone"), tried("clone"), ends("clone"), end())
RUNTIME = lines(
    begin("runtime"),
    {"type": "command_begin"},
    {"type": "command_end", "exit_code": 7, "seconds": 4.0},
    end("runtime", 7, 5.0, message="the command ended with 7"),
    at=100.0,
)
RETRIED = lines(
    begin(),
    starts("clone"),
    tried("clone", 1, "failed", 1.0, kind="transient", message="no route"),
    waits("clone", 2.0, "attempt 1 of 3 failed (transient): no route"),
    starts("clone", 2),
    tried("clone", 2, "failed", 0.5, kind="permanent", message="404", fault="user",
          hint="look at the name", output=["cloning", "fatal: not found"]),
    ends("clone", "failed", 3.6, kind="permanent", fault="user", message="404",
         hint="look at the name", attempts=2),
    {"type": "handlers_begin", "event": "failure", "count": 1},
    starts("tidy", handler=True),
    tried("tidy", seconds=0.2),
    ends("tidy", seconds=0.3, handler=True),
    end("init", 1, 4.0, message="clone: 404"),
)  # fmt: skip


def pod(shell: Any, text: str, path: str = "logs/pod-1") -> pathlib.Path:
    """A Pod's log directory with a journal."""
    journal: pathlib.Path = shell.file(f"{path}/journal.jsonl", text)
    return journal.parent


def run_folder(shell: Any, name: str = "pairun-run/job", **journals: str) -> pathlib.Path:
    """A folder as ``pairun run`` leaves it; worker_1 is the instance worker-1."""
    folder = pathlib.Path(shell.tmp) / name
    for label, text in journals.items():
        instance = folder / label.replace("_", "-")
        logs = instance / "pai" / "logs" / f"uid-{label}"
        logs.mkdir(parents=True)
        (instance / "output.log").write_text("printed\n")
        if text:
            (logs / "journal.jsonl").write_text(text)
    (folder / "gang").mkdir()
    (folder / ".pairun-run").write_text("# made by pairun run\n")
    return folder


# --- what it tells ---


@pytest.mark.parametrize("ending", ["task", "handlers"])
def test_a_wait_that_a_stop_ends_counts_until_the_stop(shell: Any, ending: str) -> None:
    """The sum of the waits is what the task waited, not what it planned."""
    ended = {
        "task": ends("clone", "failed", 8.0, kind="signal"),
        "handlers": {"type": "handlers_begin", "event": "always", "count": 0},
    }
    retries: list[Record] = []
    for n in range(1, 9):
        retries += [starts("clone", n), tried("clone", n, "failed", 0.5), waits("clone", 1.0)]
    retries[-1]["seconds"] = 30.0
    text = lines(begin(), *retries, ended[ending], end("init", 143, 13.0))
    out = shell("report", pod(shell, text)).out
    assert "… and 3 more: waited 8 times, 8 s altogether" in out
    assert "waited 30 s" not in out


def test_a_wait_that_still_runs_shows_what_is_planned(shell: Any) -> None:
    """Nothing after the last wait is recorded: its planned duration is all that is known."""
    text = lines(begin(), starts("clone"), tried("clone", 1, "failed", 0.5), waits("clone", 30.0))
    assert "waited 30 s" in shell("report", pod(shell, text)).out


def test_a_whole_journal(shell: Any) -> None:
    """Phase, outcome, exit code, every task with its time, and where the journal lies."""
    said = shell("report", pod(shell, WHOLE + RUNTIME))
    assert (said.code, said.err) == (0, "")
    assert said.out.splitlines() == [
        "pod-1: failed, exit code 7",
        "  init phase: success, exit code 0, 10 s",
        "    ok          clone  1 of 3  1 s",
        "  runtime phase: failure, exit code 7, 5 s",
        "    the command ended with 7",
        "    the user's command: exit code 7, 4 s",
        f"  logs: {shell.tmp}/logs/pod-1/journal.jsonl",
    ]


def test_a_failure_is_told_in_full(shell: Any) -> None:
    """Kind, fault, message, hint, waits, last words, and the exit handlers with their event."""
    out = shell("report", pod(shell, RETRIED)).out
    assert "failed      clone  2 of 3   3.6 s\n" in out
    assert "waited 2 s: attempt 1 of 3 failed (transient): no route\n" in out
    assert "404 [permanent, fault: user]\n" in out
    assert "help: look at the name\n" in out
    assert "| fatal: not found\n" in out
    assert "exit handlers for failure:\n    ok          tidy" in out


def test_without_a_path_it_is_the_last_run(shell: Any) -> None:
    """In the folder of `pairun run` the run that began last is reported, its instances apart."""
    old = run_folder(shell, "pairun-run/old", worker_0=WHOLE)
    os.utime(old / ".pairun-run", (1, 1))
    run_folder(shell, "pairun-run/new", worker_10=WHOLE + RUNTIME, worker_2="", previous=WHOLE)
    data = shell("report", "--json").data
    assert [(i["label"], i["outcome"]) for i in data["instances"]] == [
        ("worker-2", "no journal"), ("worker-10", "failed"),
    ]  # fmt: skip
    assert data["instances"][1]["logs"] == ["pairun-run/new/worker-10/output.log"]
    assert shell("report", "pairun-run/old").out.startswith("worker-0: init is done;")


@pytest.mark.parametrize(
    "path",
    [
        "pairun-run", "pairun-run/job", "pairun-run/job/worker-0", "pairun-run/job/worker-0/pai",
        "pairun-run/job/worker-0/pai/logs", "pairun-run/job/worker-0/pai/logs/uid-worker_0",
        "pairun-run/job/worker-0/pai/logs/uid-worker_0/journal.jsonl",
    ],
)  # fmt: skip
def test_every_folder_around_a_journal_can_be_given(shell: Any, path: str) -> None:
    """Whatever a person names, from the runs down to the file, leads to the journal."""
    run_folder(shell, worker_0=WHOLE)
    (instance,) = shell("report", "--json", path).data["instances"]
    assert instance["label"] == "worker-0"
    assert instance["journal"].endswith("uid-worker_0/journal.jsonl")


def test_instances_that_went_the_same_way_are_told_once(shell: Any) -> None:
    """The failed one stands first; the others share one report, that of the slowest."""
    good = WHOLE + lines(begin("runtime"), end("runtime", seconds=1.0), at=9.0)
    slow = WHOLE + lines(begin("runtime"), end("runtime", seconds=9.0), at=9.0)
    folder = run_folder(shell, w_0=good, w_1=slow, w_2=WHOLE + RUNTIME, w_3=good)
    out = shell("report", folder).out
    assert out.startswith("4 instances: 3 succeeded, 1 failed\n\nw-2: failed, exit code 7\n")
    assert "w-1: succeeded, exit code 0\n  same result: w-0, w-3\n" in out
    assert out.count("init phase") == 2
    assert shell("report", "--json", folder).data["alike"] == [["w-2"], ["w-1", "w-0", "w-3"]]


def test_the_first_failure_leads(shell: Any) -> None:
    """Of instances with the same failure the first one is shown, named before all others."""

    def failed(at: float) -> str:
        return WHOLE + lines(begin("runtime"), end("runtime", code=1, seconds=at), at=9.0)

    stopped = lines(begin("runtime"), end("runtime", code=143, outcome="signal"), at=9.0)
    folder = run_folder(shell, w_0=failed(3.0), w_1=failed(4.0), w_2=WHOLE + stopped)
    out = shell("report", folder).out
    assert out.startswith(
        "3 instances: 2 failed, 1 stopped\nfirst to fail: w-0: exit code 1\n\n"
        "w-0: failed, exit code 1\n  same result: w-1\n"
    )


def test_the_trace_of_an_internal_error_is_shown(shell: Any) -> None:
    """Whole, and indented as Python prints it: its author looks for the line."""
    trace = '  File "x.py", line 3, in apply\n    raise KeyError(1)\nKeyError: 1\n'
    failure: Record = {"kind": "internal", "message": "X raised KeyError: 1", "fault": "unknown"}
    journal = lines(
        begin(),
        starts("x"),
        tried("x", outcome="failed", trace=trace, **failure),
        ends("x", "failed", **failure),
        end(code=1),
    )
    out = shell("report", pod(shell, journal)).out
    assert "".join(f"        | {line}\n" for line in trace.splitlines()) in out


def test_json(shell: Any) -> None:
    """The document has the documented fields, and the blame only where it was asked for."""
    path = pod(shell, RETRIED + RUNTIME)
    data = shell("report", "--json", path).data
    assert (data["schema"], data["problems"]) == (1, [])
    init, runtime = data["instances"][0]["phases"]
    assert (init["exit_code"], init["handlers_for"], init["began"]) == (1, "failure", BEGAN)
    assert runtime["command"] == {
        "exit_code": 7,
        "began_s": 101.0,
        "seconds": 4.0,
        "measured": True,
    }
    clone, tidy = init["tasks"]
    assert tidy["handler"]
    assert not clone["handler"]
    assert (clone["outcome"], clone["kind"], clone["of"]) == ("failed", "permanent", 3)
    assert [a["outcome"] for a in clone["attempts"]] == ["failed", "failed"]
    assert clone["attempts"][1]["output"] == ["cloning", "fatal: not found"]
    assert [(w["after"], w["seconds"]) for w in clone["waits"]] == [(1, 2.0)]
    assert "blame" not in init
    with_blame = shell("report", "--json", "--blame", path).data
    assert with_blame["instances"][0]["phases"][0]["blame"]["path"] == ["clone", "tidy"]
    assert [s["task"] for s in with_blame["slowest"]]


# --- blame ---


def blamed(*records: Record) -> Any:
    reading = read_entries(io.BytesIO(lines(*records).encode()), "j")
    (phase,) = phases_of(reading.entries)
    return blame(phase)


def test_blame_takes_a_task_apart(shell: Any) -> None:
    """Attempts, waits and the rest add up to the task, and stand in the order of their cost."""
    reading = read_entries(io.BytesIO(RETRIED.encode()), "j")
    found = blame(phases_of(reading.entries)[0])
    clone = found.costs[0]
    assert [(p.what, round(p.seconds, 3)) for p in clone.parts] == [
        ("wait after attempt 1", 2.0), ("attempt 1", 1.0), ("attempt 2", 0.5),
        ("starting and ending them", 0.1),
    ]  # fmt: skip
    assert clone.share == pytest.approx(0.9)
    assert found.overhead_s == pytest.approx(0.1)
    out = shell("report", "--blame", pod(shell, RETRIED)).out
    assert "clone                     3.6 s  90.0% ##################" in out
    assert "path: clone > tidy" in out


def test_of_a_group_only_the_longest_is_on_the_path() -> None:
    """Tasks that ran at once are not added up, and a shorter one is said to be beside."""
    found = blamed(
        begin(), starts("first"), tried("first"), ends("first", seconds=1.0),
        starts("a"), starts("b"), tried("b"), ends("b", seconds=2.0), tried("a"),
        ends("a", seconds=6.0), starts("last"), tried("last"), ends("last", seconds=1.0),
        end(seconds=9.0),
    )  # fmt: skip
    assert list(found.path) == ["first", "a", "last"]
    assert {c.id: c.beside for c in found.costs} == {
        "first": None, "a": None, "b": "a", "last": None,
    }  # fmt: skip
    assert found.overhead_s == pytest.approx(1.0)
    assert sum(c.share for c in found.costs if c.beside is None) <= 1.0


def test_the_slowest_instance_of_each_task(shell: Any) -> None:
    def journal(seconds: float) -> str:
        records = begin(), starts("clone"), tried("clone"), ends("clone", seconds=seconds)
        return lines(*records, end(seconds=seconds))

    folder = run_folder(shell, w_0=journal(1), w_1=journal(30), w_2=journal(2))
    (row,) = shell("report", "--blame", "--json", folder).data["slowest"]
    assert row == {
        "phase": "init", "task": "clone", "label": "w-1", "seconds": 30, "median_s": 2,
        "instances": 3,
    }  # fmt: skip
    out = shell("report", "--blame", folder).out
    assert out.startswith("w-1, the slowest of 3 instances: 30 s\n")
    assert "init clone  w-1      30 s  2 s     3" in out


# --- journals that are not whole ---


def test_every_prefix_of_a_journal_is_told(shell: Any) -> None:
    """A writer that was killed at any byte leaves a journal that can be read."""
    text = (RETRIED + RUNTIME).encode()
    for size in range(0, len(text), 7):
        reading = read_entries(io.BytesIO(text[:size]), "j")
        for phase in phases_of(reading.entries):
            blame(phase)
    path = shell.file("cut/journal.jsonl", text[:-30])
    said = shell("report", path)
    assert said.code == 0
    assert "cut: no end of the runtime phase is recorded: it still runs, or was killed" in said.out
    assert "note: line 16 is cut off: the writer was killed, or the disk was full" in said.out


def test_what_was_interrupted(shell: Any) -> None:
    """An attempt without an end, in a phase that began again: the first is lost, and is told."""
    text = lines(begin(), starts("clone"), at=-50.0) + WHOLE
    out = shell("report", pod(shell, text)).out
    assert "  init phase: interrupted, about 1 s\n    interrupted clone" in out
    assert "no end of it is recorded; last was attempt 1" in out
    assert "  init phase (start 2): success, exit code 0, 10 s" in out


def test_a_phase_whose_tasks_were_killed() -> None:
    """A task that was killed is over when the exit handlers begin; it did not run beside them."""
    found = blamed(
        begin("runtime"), starts("load"), {"type": "handlers_begin", "event": "failure"},
        starts("tidy", handler=True), tried("tidy"), ends("tidy", handler=True),
        end("runtime", 255, 5.0),
    )  # fmt: skip
    assert {c.id: c.beside for c in found.costs} == {"load": None, "tidy": None}
    assert not next(c for c in found.costs if c.id == "load").measured


def test_a_clock_that_is_set_back(shell: Any) -> None:
    """Durations stay what they were, none is negative, and it is said."""
    records = [begin(), starts("clone"), tried("clone"), ends("clone"), starts("late")]
    text = "".join(
        json.dumps({"schema": 1, "time": BEGAN - 3600 * (n > 1) + n, **r}) + "\n"
        for n, r in enumerate(records)
    )
    out = shell("report", pod(shell, text)).out
    assert "note: the clock was set back by 3599.0 s before line 3" in out
    assert "init phase: unfinished, about 3 s" in out
    assert "-" not in out.split("init phase")[1].split("logs:")[0]


def test_foreign_lines_and_unknown_types(shell: Any) -> None:
    foreign = '[]\nhello\n{"a": 1}\n{"schema": 1, "type": "task_end", "task": 7}\n\x00\n'
    progress = lines({"type": "progress", "task": "clone", "bytes": 5}, at=-5.0)
    data = shell("report", "--json", pod(shell, foreign + progress + WHOLE)).data
    (instance,) = data["instances"]
    assert instance["notes"] == ["lines 1, 2, 3, 4, 5 are not a record, and skipped"]
    assert instance["ignored_records"] == {"progress": 1}
    assert [p["outcome"] for p in instance["phases"]] == ["success"]


def test_an_unknown_schema_is_an_error(shell: Any) -> None:
    """A journal of another schema is not guessed at: the line, the schema and the way out."""
    text = WHOLE + '{"schema": 2, "type": "phase_begin", "phase": "init"}\n'
    said = shell("report", pod(shell, text))
    assert (said.code, said.out, said.ids) == (1, "", ["PR810"])
    assert "line 6: schema 2; this version reads schema 1" in said.err
    data = shell("report", "--json", "logs/pod-1")
    assert (data.code, data.err) == (1, "")
    assert [p["id"] for p in data.data["problems"]] == ["PR810"]


def test_an_empty_journal(shell: Any) -> None:
    """A journal without a record says so and is no error; so does standard input."""
    said = shell("report", pod(shell, ""))
    assert said.code == 0
    assert said.out.startswith("pod-1: nothing recorded: no phase has begun\n")
    assert "the journal is empty" in said.out
    assert "no task, attempt or wait is recorded" in shell("report", "--blame", "logs").out


def test_standard_input(shell: Any) -> None:
    said = shell.process("report", "-", stdin=WHOLE)
    assert said.code == 0
    assert said.out.startswith("standard input: init is done;")


@pytest.mark.parametrize("path", ["none", "README.md", "empty", ".", None])
def test_what_cannot_be_read(shell: Any, path: str | None) -> None:
    """What is no journal is an error with an id and a hint, and exit code 1."""
    shell.file("README.md", "# no journal\n")
    (shell.tmp / "empty").mkdir()
    said = shell("report", *([path] if path else []))
    assert (said.code, said.out, said.ids) == (1, "", ["PR810"])


def test_the_name_of_a_run_is_not_its_path(shell: Any) -> None:
    """The hint names the run's folder, or says how to find a run."""
    (shell.tmp / "pairun-run/train").mkdir(parents=True)
    assert "help: did you mean pairun-run/train?\n" in shell("report", "train").err
    assert "help: `pairun report` shows the last run" in shell("report", "trian").err


def test_one_unreadable_journal_costs_only_itself(shell: Any) -> None:
    """The other instances are reported, and the exit code says that something is missing."""
    said = shell("report", run_folder(shell, w_0=WHOLE, w_1="no journal at all\n"))
    assert (said.code, said.ids) == (1, ["PR810"])
    assert said.out.startswith("w-0: init is done")


def test_control_characters_are_made_visible(shell: Any) -> None:
    """No text of a journal reaches the terminal as a command, in text or in JSON."""
    bad = "\x1b[2J\u202ex\x9b"
    text = lines(
        begin(bad, pairun=bad), starts(bad, name=bad), waits(bad, 1.0, f"{bad}\nmore"),
        tried(bad, 1, "failed", 1.0, message=bad, hint=bad, kind=bad, output=[bad]),
        ends(bad, bad, 1.0), {"type": "handlers_begin", "event": bad},
        end(bad, 1, message=bad),
    )  # fmt: skip
    path = pod(shell, text, f"logs/{bad}")
    for options in ([], ["--blame"], ["--json"]):
        out = shell("report", *options, path).out
        assert not set(out) & set("\x1b\u202e\x9b")
        assert "1b[2J" in out


def test_colours_on_a_terminal_only(shell: Any) -> None:
    """A pipe gets no escape sequence; a terminal does."""
    path = pod(shell, RETRIED)
    assert "\033" not in shell.process("report", path).out
    master, slave = os.openpty()
    argv = [sys.executable, "-m", "pairun", "report", str(path)]
    env = {"PATH": os.environ["PATH"], "HOME": str(shell.tmp), "TERM": "xterm"}
    subprocess.run(argv, stdout=slave, stdin=subprocess.DEVNULL, env=env, check=True)
    os.close(slave)
    assert b"\033[" in os.read(master, 1 << 16)
    os.close(master)


@pytest.mark.slow
def test_a_huge_journal_is_read_in_linear_time(shell: Any) -> None:
    """Of 100,000 records each costs no more than of 10,000, and the report stays short."""

    def journal(tasks: int) -> bytes:
        rows = [begin()]
        for n in range(tasks):
            rows += [starts(f"t{n}"), tried(f"t{n}"), ends(f"t{n}")]
        return lines(*rows, waits("t0", 1.0)).encode()

    def cost(text: bytes) -> float:
        began = time.process_time()
        (phase,) = phases_of(read_entries(io.BytesIO(text), "j").entries)
        blame(phase)
        return time.process_time() - began

    short, long = journal(1_000), journal(33_333)
    each = min(cost(short) for _ in range(3)) / 1_000
    assert cost(long) / 33_333 < each * 5
    said = shell("report", pod(shell, long.decode()))
    assert len(said.out.splitlines()) < 20
    assert "… and 33333 more: 33333 ok" in said.out


def test_a_line_without_an_end_costs_no_memory() -> None:
    """What is longer than any record is left out, and reading goes on after it."""
    text = b"x" * (READ_BYTES + 5) + b"\n" + WHOLE.encode()
    reading = read_entries(io.BytesIO(text), "j")
    assert reading.skipped_bytes >= READ_BYTES
    assert len(reading.entries) == 5


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)
FIELD = st.sampled_from(
    ["task", "attempt", "seconds", "outcome", "of", "handler", "phase", "exit_code", "message",
     "event", "output", "time", "because", "name", "kind", "attempts"]
)  # fmt: skip


@given(
    st.lists(
        st.tuples(
            st.sampled_from([starts("a"), tried("a"), waits("a", 1.0), ends("a"), begin(), end(),
                             starts("b"), ends("b"), {"type": "handlers_begin", "event": "x"},
                             {"type": "command_begin"}, end("runtime"),
                             {"type": "command_end", "exit_code": 1, "seconds": 1.0}]),
            st.dictionaries(FIELD, VALUES, max_size=2),
        ),
        max_size=12,
    )
)  # fmt: skip
@settings(max_examples=cases(150))
def test_no_record_whatever_it_holds_breaks_the_report(records: list[tuple[Record, Record]]) -> None:  # fmt: skip
    """Any records in any order, with any values, become a report whose numbers make sense."""
    text = "".join(
        json.dumps({"schema": 1, "time": BEGAN, **r, **odd}) + "\n" for r, odd in records
    )
    try:
        reading = read_entries(io.BytesIO(text.encode("utf-8", "replace")), "j")
    except PairunError:
        return
    for phase in phases_of(reading.entries):
        found = blame(phase)
        assert all(c.seconds >= 0 and 0 <= c.share <= 1 for c in found.costs)
        assert found.overhead_s >= 0


# --- what a real run leaves ---


def test_a_real_run_has_both_ends(shell: Any) -> None:
    """After `pairun run` the report knows both phases, the command's code and time, and the log."""
    job = shell.job()
    text = job.read_text().replace("[train]", "['exit 7']").replace("instances: 2", "instances: 1")
    job.write_text(text)
    assert shell.process("run", "--no-namespace", job).code == 7
    (instance,) = shell("report", "--json").data["instances"]
    assert [(p["phase"], p["outcome"], p["exit_code"]) for p in instance["phases"]] == [
        ("init", "success", 0), ("runtime", "failure", 7),
    ]  # fmt: skip
    assert instance["phases"][1]["command"]["exit_code"] == 7
    assert instance["phases"][1]["message"] == "the command ended with 7"
    assert instance["logs"] == ["pairun-run/mnist/worker-0/output.log"]


@pytest.mark.slow
def test_a_job_that_succeeds_although_an_instance_failed_is_told_as_one(shell: Any) -> None:
    """By the recap and by the report, also after runs that left the same file."""
    policy = "    completion: {minFailedInstances: -1, minSucceededInstances: -1}\n"
    text = shell.job_text.replace("commands: [train]", "commands: ['exit $PAI_TASK_INDEX']")
    job = shell.file("job.yaml", text.replace("  worker:\n", f"  worker:\n{policy}"))
    sentence = (
        "succeeded by its completion policy, although 1 instance failed: all instances have ended\n"
    )
    for _ in range(3):
        ran = shell.process("run", "--no-namespace", "--workdir", "work", job)
        assert ran.code == 0, ran.err
        assert f"\n{sentence}" in ran.out
    told = " ".join(shell.process("report", "work").out.split())
    assert f"the job {sentence.strip()}" in told


def test_nothing_on_standard_input(shell: Any) -> None:
    """No journal at all is an error, not a run in which nothing happened."""
    said = shell.process("report", "-", stdin="")
    assert (said.code, said.ids) == (1, ["PR810"])
    assert "standard input: it is empty" in said.err


def test_metrics_sum_up_every_journal_of_a_folder(shell: Any) -> None:
    """Two Pods' journals, and a third that cannot be read: it is a problem and costs only itself."""
    for pod in ("a", "b"):
        text = "".join(json.dumps({"schema": 1, **r}) + "\n" for r in (begin(), end(code=3)))
        shell.file(f"logs/{pod}/journal.jsonl", text)
    said = shell("report", "--metrics", "logs")
    assert (said.code, said.err) == (0, "")
    exits = 'pairun_phase_exits_total{phase="init",outcome="failure",exit_code="3"} 2\n'
    assert exits in said.out
    assert "pairun_journals 2\n" in said.out
    shell.file("logs/c/journal.jsonl", "not a journal\n")
    said = shell("report", "--metrics", "logs")
    assert (said.code, said.ids) == (1, ["PR810"])
    assert exits in said.out
    assert said.out.endswith("# EOF\n")
    said = shell("report", "--metrics", "nowhere")
    assert (said.code, said.out, said.ids) == (1, "", ["PR810"])
