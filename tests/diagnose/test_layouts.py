"""Shared logs in any layout: a column names the writer of each line; a text that mentions a rank does not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from pairun.diagnose.layouts import split, with_names
from pairun.diagnose.lines import Log
from pairun.diagnose.table import Table
from tests.diagnose.jobs import KEY_ERROR, incident_of, write

LOST = (
    "2026-03-01 12:04:16,871 INFO step 120 loss 0.70\n"
    "RuntimeError: [gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.3]:41\n"
)

Layout = Callable[[int, str], str]
LAYOUTS: dict[str, Layout] = {
    "pdsh": lambda n, line: f"c17-{n}: {line}",
    "stern": lambda n, line: f"bert-worker-{n} pytorch {line}",
    "compose": lambda n, line: f"worker-{n}-1   | {line}",
    "logcli": lambda n, line: f'2026-03-01T12:04:16Z {{pod="w-{n}", stream="stderr"}} {line}',
    "fluentd": lambda n, line: f"2026-03-01T12:04:16.1Z w-{n} stdout: {line}",
    "aws": lambda n, line: f"2026-03-01T12:04:16.1+00:00 train/default/w-{n} {line}",
    "angles": lambda n, line: f"<trainer-{n}> {line}",
    "hosts": lambda n, line: f"dgx{n}: {line}",
    "indexed Job": lambda n, line: f"sft-{n}-{'bcdf'[n]}x7k2 main {line}",
    "honcho": lambda n, line: f"12:04:16 trainer.{n} | {line}",
    "GNU parallel": lambda n, line: f"{n}\t{line}",
    "PM2": lambda n, line: f"{n}|train  | {line}",
    "logfmt": lambda n, line: f"ts=2026-03-01T12:04:16Z pod=w-{n} msg={json.dumps(line)}",
    "brackets": lambda n, line: f"[{n}] {line}",
    "of all": lambda n, line: f"[{n}/4] {line}",
    "bars": lambda n, line: f"rank {n} | {line}",
    "hash": lambda n, line: f"#{n} {line}",
    "key first": lambda n, line: f"[worker={n}] {line}",
    "grep": lambda n, line: f"logs/rank_{n}.log:{line}",
}
OF_NODES: dict[str, Layout] = {
    "parts of a word": lambda n, line: f"node{n // 2}/gpu{n % 2} {line}",
    "two keys": lambda n, line: f"node={n // 2} local_rank={n % 2} {line}",
    "parallel groups": lambda n, line: f"[DP{n // 2} TP{n % 2}] {line}",
    "local numbers": lambda n, line: f"node-{n // 2}: [{n % 2}] {line}",
}


def _merged(layout: Layout, failed: int, ranks: int = 4) -> str:
    """Lines of ranks, in turn."""
    texts = [KEY_ERROR if n == failed else LOST for n in range(ranks)]
    lines = [[layout(n, line) for line in text.splitlines()] for n, text in enumerate(texts)]
    return "".join(f"{own[k]}\n" for k in range(5) for own in lines if k < len(own))


@pytest.mark.parametrize("name", [*LAYOUTS, *OF_NODES])
def test_the_writer_of_a_traceback_failed_first(tmp_path: Path, table: Table, name: str) -> None:
    """Of two numbers that of the node counts: those of the processes come back on each."""
    layout, rank = (LAYOUTS[name], 2) if name in LAYOUTS else (OF_NODES[name], 1)
    incident = incident_of(write(tmp_path, {"all.log": _merged(layout, failed=2)}), table)
    assert incident.first is not None
    assert incident.first.rank == rank


TRACE = 'Traceback (most recent call last):\n  File "t.py", line 1, in f\nKeyError: 1\n'


def _log(line: str, end: str = "") -> str:
    """Lines of four ranks, in turn."""
    return "".join(f"2026-03-01 12:04:{k:02} {line.format(n=k % 4)}\n" for k in range(40)) + end


@pytest.mark.parametrize(
    "line",
    [
        "WARNING worker 3{n}: retrying connection to host-12, failed attempt 4: not found",
        "INFO rank {n} joined",
        "INFO finished the shard of [rank {n}]",
        "INFO worker-{n} lost its connection",
        "INFO task {n}: done",
        "WARNING worker-{n}: retrying connection to host-12: ConnectionError: refused",
    ],
)
@pytest.mark.parametrize("end", [TRACE, "KeyError: 1\n"])
def test_a_text_that_mentions_workers_names_no_writers(
    tmp_path: Path, table: Table, line: str, end: str
) -> None:
    """The answer is that for the log of one program."""
    incident = incident_of(write(tmp_path, {"main.log": _log(line, end)}), table)
    assert incident.first is None or incident.first.rank is None
    assert incident.diagnosis.klass == "user_code_error"
    assert "KeyError: 1" in incident.diagnosis.headline


@pytest.mark.parametrize(
    "line",
    [
        "INFO [rank {n}] step 3",
        "[INFO ] [Rank {n}] step 3",
        "[worker={n}] [INFO] step 3",
        "rank {n} INFO step 3",
        "INFO train.py:33 (rank {n}) step 3",
        "INFO|rank {n}|step 3",
    ],
)
def test_a_column_names_the_writers(line: str) -> None:
    """It is in brackets or before the level."""
    log = Log(_log(line).encode(), "log")
    shown = with_names(log).data.splitlines()
    assert [each[:9] for each in shown[:4]] == [
        b"[rank0]: ",
        b"[rank1]: ",
        b"[rank2]: ",
        b"[rank3]: ",
    ]


def test_a_traceback_after_a_line_that_is_no_error_has_no_rank(
    tmp_path: Path, table: Table
) -> None:
    """Ranks that share a log print in turn, so that the line before it may be of any of them."""
    text = _log("[INFO] [Rank {n}] step=3 error_rate: 0.05", TRACE)
    incident = incident_of(write(tmp_path, {"main.log": text}), table)
    assert incident.first is None or incident.first.rank is None
    assert incident.diagnosis.evidence[0][1:] == (43, "KeyError: 1")


def test_a_traceback_that_a_logger_prints_with_an_error_has_the_rank_of_the_line(
    tmp_path: Path, table: Table
) -> None:
    """The lines after it may be of other ranks."""
    text = _log("[INFO] [Rank {n}] step=3", f"2026-03-01 12:05:00 [ERROR] [Rank 2] failed\n{TRACE}")
    text += "2026-03-01 12:05:01 [INFO] [Rank 1] step=4\n"
    incident = incident_of(write(tmp_path, {"main.log": text}), table)
    assert incident.first is not None
    assert incident.first.rank == 2


def test_lines_keep_their_number_and_text() -> None:
    """Only names are added, to the lines of loggers and of the tracebacks that they print."""
    text = _log("[INFO] [Rank {n}] step=3", f"2026-03-01 12:05:00 [ERROR] [Rank 2] failed\n{TRACE}")
    text += "2026-03-01 12:05:01 [INFO] [Rank 1] step=4\nKilled"
    shown = with_names(Log(text.encode(), "log")).data.decode()
    added = [(new, old) for new, old in zip(shown.split("\n"), text.split("\n"), strict=True)]
    assert all(new.removesuffix(old).startswith("[rank") for new, old in added[:-1])
    assert [new[:9] for new, _ in added[40:]] == [*["[rank2]: "] * 4, "[rank1]: ", "Killed"]


@pytest.mark.parametrize(
    "prefix",
    ["[rank{}]: ", "[default{}]:", "{}: ", "{:>2}: ", "[1,{}]<stderr>:", "[pod/job-{}/main] "],
)
def test_lines_of_several_ranks_are_split(prefix: str) -> None:
    """Each rank's part keeps the numbers of the file's lines."""
    lines = [f"{prefix.format(n % 3)}step {n} loss 0.5\n" for n in range(30)]
    parts = split(Log("".join(lines).encode(), "all.log"))
    assert [writer.rank for writer, _ in parts if writer.rank is not None] == [0, 1, 2]
    assert not {writer.host for writer, _ in parts} - {"", *(f"job-{n}" for n in range(3))}
    second = next(log for writer, log in parts if writer.rank == 1)
    assert second.number(second.data.index(b"step 4 ")) == 5


def test_one_ranks_log_is_not_split() -> None:
    """A few lines that begin with numbers make no ranks."""
    text = "epoch 1\n" * 20 + "3: a note\n4: another\n" + "epoch 2\n" * 20
    assert split(Log(text.encode(), "a.log")) == []


@pytest.mark.parametrize(
    ("outer", "pod"), [("vllm-1      | ", "vllm-1"), ("[pod/serve-0/main] ", "serve-0")]
)
@pytest.mark.parametrize("inner", ["(VllmWorker rank={} pid=30{}) ", "[rank{}]: "])
@pytest.mark.parametrize("beside", ["", "nginx-1     | GET /health\n"])
def test_within_one_container_the_inner_writers_are_the_ranks(
    outer: str, pod: str, inner: str, beside: str
) -> None:
    """The container's other lines are a launcher's; its number is no rank."""
    lines = [f"{outer}{inner.format(n % 3, n % 3)}INFO step {n}\n" for n in range(12)]
    text = "".join(lines) + beside + f"{outer}ERROR the engine ended\n"
    parts = split(Log(text.encode(), "all.log"))
    ranked = {w.rank: w.label for w, _ in parts if "nginx" not in w.label and not w.launcher}
    assert ranked == {0: "rank 0", 1: "rank 1", 2: "rank 2"}
    assert pod in [w.label for w, _ in parts if w.launcher]


def test_numbers_that_come_back_in_another_pod_are_no_ranks() -> None:
    """Two replicas have a worker 0 each."""
    lines = [f"[pod/serve-{n % 2}/main] (W rank={n % 4 // 2} pid=7) step {n}\n" for n in range(16)]
    parts = split(Log("".join(lines).encode(), "all.log"))
    assert [writer.label for writer, _ in parts if writer.label != "lines without a rank"] == [
        "serve-0",
        "serve-1",
    ]
