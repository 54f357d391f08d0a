"""Shared logs in any layout: the writer of each line is found by comparison of the lines."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from pairun.diagnose.layouts import with_names
from pairun.diagnose.numbered import NumberedLog
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


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_the_first_rank_is_named_in_every_layout(
    tmp_path: Path, table: Table, layout: Layout
) -> None:
    """No tool's name is known; the failure has the line number of the file."""
    incident = incident_of(write(tmp_path, {"all.log": _merged(layout, 2)}), table)
    assert incident.first is not None
    assert incident.first.rank == 2
    assert incident.diagnosis.klass == "user_code_error"
    shown = incident.diagnosis.evidence[0]
    assert shown.line == 11
    text = (tmp_path / "all.log").read_text().splitlines()[10]
    assert shown.text in text
    assert "KeyError: 'label'" in shown.text


@pytest.mark.parametrize(
    "line",
    ["epoch-{n}: loss 0.7", "layer.{n} frozen", "attempt-{n} | loss 0.7", "12:04:0{n} loss 0.7"],
)
def test_numbers_that_count_something_else_name_no_writers(line: str) -> None:
    """Such a log is left as it is."""
    log = NumberedLog("".join(line.format(n=n % 4) + "\n" for n in range(40)).encode(), "log", [])
    assert with_names(log) is log


@pytest.mark.parametrize(
    "line",
    ["step {k}: rank=0 loss 0.5", "train.py:{k} loss 0.5", "[layer {k}] frozen", "{k} loss 0.5"],
)
def test_a_counter_names_no_writers(line: str) -> None:
    """Its values do not come back."""
    text = "".join(line.format(k=n // 3) + "\n" for n in range(60))
    log = NumberedLog(text.encode(), "log", [])
    assert with_names(log) is log


def test_a_counter_is_no_node_of_the_number_before_it(tmp_path: Path, table: Table) -> None:
    """The last lines, which are of no step, have a word where the others have their step."""
    lines = [
        f"[w:{n}] 2026-03-01 12:04:{k:02} step {k} loss 2.1" for k in range(15) for n in range(4)
    ]
    lost = "The following tasks are unhealthy (stopped sending heartbeats): /job:jax_worker/task:3"
    lines += [
        "[w:3] 2026-03-01 12:05:17 jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory",
        f"[w:0] E0301 12:05:57.000 coordination_service.cc:1200] INTERNAL: {lost}",
        f"[w:1] F0301 12:05:58.000 client.h:80] Terminating process because the JAX service failed: {lost}",
        f"[w:2] F0301 12:05:58.100 client.h:80] Terminating process because the JAX service failed: {lost}",
    ]
    incident = incident_of(write(tmp_path, {"all.log": "\n".join(lines) + "\n"}), table)
    assert {m.rank for m in incident.members} == {0, 1, 2, 3}


def test_a_traceback_without_a_name_is_of_the_one_rank_that_writes_no_more(
    tmp_path: Path, table: Table
) -> None:
    """Python prints it past the logger, and the other ranks go on."""
    lines = [f"[{n}/4] step {k} loss 0.5" for k in range(6) for n in range(4)]
    lines += ["[2/4] step 6 loss 0.5", *KEY_ERROR.splitlines()[1:]]
    lines += [f"[{n}/4] {LOST.splitlines()[1]}" for n in (0, 1, 3)]
    incident = incident_of(write(tmp_path, {"all.log": "\n".join(lines) + "\n"}), table)
    assert incident.first is not None
    assert incident.first.rank == 2
    assert incident.diagnosis.klass == "user_code_error"


def test_a_column_of_a_logger_names_the_rank_also_of_tracebacks(
    tmp_path: Path, table: Table
) -> None:
    """Only the lines of the logger have it."""
    text = "".join(f"2026-03-01 12:04:1{k} I r{n} step {k}\n" for k in range(4) for n in range(3))
    trace = KEY_ERROR.partition("\n")[2]
    text += f"2026-03-01 12:04:15 E r1 failed\n{trace}2026-03-01 12:04:16 E r0 failed\n"
    text += f"Traceback (most recent call last):\n{LOST.splitlines()[1]}\n"
    incident = incident_of(write(tmp_path, {"all.log": text}), table)
    assert incident.first is not None
    assert incident.first.rank == 1
    assert incident.diagnosis.evidence[0].text == "KeyError: 'label'"


def test_hosts_that_pdsh_names_need_no_column() -> None:
    """A host whose ssh failed writes one line."""
    text = "cmd = pdsh -S -w h1,h2 python\nh2: Host key verification failed.\npdsh@h1: h2: ssh exited with exit code 255\n"
    text += "h1: loading\nh1: the client timed out\npdsh@h1: h1: ssh exited with exit code 1\n"
    shown = with_names(NumberedLog(text.encode(), "a.log", [])).data.splitlines()
    assert shown[1] == b"[pod/h2/main] Host key verification failed."
    assert shown[3] == b"[pod/h1/main] loading"
