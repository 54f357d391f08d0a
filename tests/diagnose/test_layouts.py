"""Shared logs in any layout: the writer of each line is found by comparison of the lines."""

from __future__ import annotations

import json
from collections.abc import Callable

from tests.diagnose.jobs import KEY_ERROR

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
