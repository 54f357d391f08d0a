"""What `status` and `report` of a job with 10,000 Pods cost, at an API server that answers at once."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks.measure import ROOT, TIMES, Row, repeated, samples, wall_ms
from tests.engines.kubernetes.samples import PODS, ended, kubeconfig, log_journal, pod
from tests.fakeapi import Answer, Fake, status
from tests.report.page import stories

COUNT, PAGE = 10_000, 500
WALL_MS, PEAK_MB = 5000.0, 300.0

_SPEC = {"env": [{"name": f"VARIABLE_{n}", "value": "a value of a variable"} for n in range(100)]}
"""Makes a Pod of 7 kB, as large as one that pairun makes."""

_READ = """
import json, sys, urllib.request
page = "0"
while page:
    with urllib.request.urlopen(f"{sys.argv[1]}?continue={page}") as answer:
        page = json.load(answer)["metadata"].get("continue")
"""


class _Job:
    """A Job whose Pods have succeeded, and whose logs carry a journal."""

    def __init__(self) -> None:
        self._log = b"epoch 1\n" * 200 + log_journal(stories.success())
        self._pages = [self._page(first) for first in range(0, COUNT, PAGE)]

    def _page(self, first: int) -> bytes:
        pods = [
            pod(index=n, phase="Succeeded", containerStatuses=[ended("app", 0)])
            for n in range(first, first + PAGE)
        ]
        for each in pods:
            each["spec"] |= {"containers": [_SPEC]}
        more = {"continue": str(first + PAGE)} if first + PAGE < COUNT else {}
        return json.dumps({"items": pods, "metadata": more}).encode()

    def __call__(self, method: str, path: str, query: Mapping[str, str], body: Any) -> Answer:
        if path.endswith("/log"):
            return 200, self._log
        if path == PODS:
            return 200, self._pages[int(query.get("continue", "0")) // PAGE]
        if path.endswith("/jobs/mnist"):
            metadata = {"name": "mnist", "labels": {"pairun/job": "mnist"}}
            return 200, {"metadata": metadata, "spec": {"completions": COUNT}}
        return status(404, "NotFound", "not found")


def rows() -> Iterator[Row]:
    """The time and the memory of each command, beside those of reading the list of Pods alone."""
    fake = Fake(_Job())
    with tempfile.TemporaryDirectory() as name:
        config = kubeconfig(pathlib.Path(name) / "config", fake.url)
        for command in ("status", "report"):
            yield from _rows(command, config, f"{fake.url}{PODS}")
    fake.close()


def _rows(command: str, config: str, pods: str) -> Iterator[Row]:
    rounds = repeated(
        TIMES,
        lambda: (
            *_cost(["-m", "pairun", command, "mnist"], config),
            *_cost(["-c", _READ, pods], config),
        ),
    )
    ms, mb, peer_ms, peer_mb = (samples(values) for values in zip(*rounds, strict=True))
    what, peer = f"{command} of {COUNT} Pods", "Python reads the list as JSON"
    yield Row(what, "ms", ms, WALL_MS, peer, peer_ms)
    yield Row(f"{what}, memory", "MB", mb, PEAK_MB, peer, peer_mb)


def _cost(argv: list[str], config: str) -> tuple[float, float]:
    """The time of a process in milliseconds, and its peak memory in MB."""
    peak_kb = 0

    def run() -> None:
        nonlocal peak_kb
        child = subprocess.Popen(
            [sys.executable, *argv],
            cwd=ROOT,
            env={**os.environ, "KUBECONFIG": config},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        _, child.returncode, usage = os.wait4(child.pid, 0)
        peak_kb = usage.ru_maxrss
        if child.returncode:
            raise RuntimeError(f"{' '.join(argv)[:200]}: {child.returncode}")

    return wall_ms(run), peak_kb / 1000
