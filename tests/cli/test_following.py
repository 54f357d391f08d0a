"""A job in a cluster that is followed: `status --watch`, the same as `submit --wait`."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pairun.cli.main import main
from tests.engines.kubernetes.samples import PLACED, PODS, ended, kubeconfig, pod, runs
from tests.fakeapi import Answer, Fake, status
from tests.ptyscreen import PtyScreen

FRAMEWORK = {"spec": {"taskRoles": [{"name": "worker", "taskNumber": 3}]}}


class Cluster:
    """A job of three plain Pods; one of them fails once `fail` is set."""

    def __init__(self) -> None:
        self.fail = False
        waiting = pod(index=2, phase="Pending")
        waiting["spec"]["nodeName"] = None
        self.pods = [self._running(0), self._running(1), waiting]

    def __call__(self, _: str, path: str, query: dict[str, str], __: Any) -> Answer:
        """Answer."""
        if path == PODS and "watch" in query:
            if not self.fail:
                return 200, b""
            self.pods[1] = self._failed()
            return 200, (json.dumps({"type": "MODIFIED", "object": self.pods[1]}) + "\n").encode()
        if path == PODS:
            return 200, {"items": self.pods, "metadata": {"resourceVersion": "1"}}
        if path.endswith("/configmaps"):
            return 200, {"items": [{"data": {"framework.json": json.dumps(FRAMEWORK)}}], "metadata": {}}  # fmt: skip
        return status(404, "NotFound", "not found")

    def _running(self, index: int) -> dict[str, Any]:
        return pod(index=index, phase="Running", conditions=PLACED, containerStatuses=[runs("app")])

    def _failed(self) -> dict[str, Any]:
        return pod(index=1, phase="Failed", conditions=PLACED, containerStatuses=[ended("app", 42)])


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """An API server with the job; its address is in the file `config`."""
    job = Cluster()
    fake = Fake(job)
    kubeconfig(tmp_path / "config", fake.url)
    yield job
    fake.close()


def argv(folder: Path, *more: str) -> list[str]:
    command = [sys.executable, "-m", "pairun", "status", "mnist", "--watch", *more]
    return [*command, "--kubeconfig", str(folder / "config")]


@pytest.mark.slow
@pytest.mark.parametrize("columns", [60, 80, 120])
def test_the_view_on_a_terminal(cluster: Cluster, tmp_path: Path, columns: int) -> None:
    """A line for each instance that has not ended, changes above; then the job's exit code."""
    with PtyScreen(argv(tmp_path), columns=columns) as run:
        run.wait_for(lambda text: "3 of 3 running" in text)
        assert re.search(r"\nworker-0  running  on n1 +(restart 1 +)?\S+", run.text)
        assert re.search(r"\nworker-2  pending  no node yet", run.text)
        assert max(map(len, run.rows)) <= columns
        cluster.fail = True
        assert run.end() == 42
    text = " ".join(run.text.split())
    assert "[pairun] worker-1: failed: the command ended with 42 (1 of 3 failed)" in text
    assert "[pairun] 3 instances: 1 failed [pairun] the job has failed" in text
    assert "worker-0, worker-2 may still run" in text
    assert "of 3 running 1" not in text
    assert run.shows_cursor()


@pytest.mark.slow
def test_plain_lines_elsewhere(cluster: Cluster, tmp_path: Path) -> None:
    """The same facts, without any code of terminals."""
    cluster.fail = True
    done = subprocess.run(argv(tmp_path), capture_output=True, text=True, timeout=60)
    assert done.returncode == 42
    assert "[pairun] worker-0, worker-1: running (2 of 3 running)\n" in done.stderr
    assert "[pairun] the job has failed: worker-1 ended with 42 (exit code 42)\n" in done.stderr
    assert done.stdout == ""
    assert "\033" not in done.stderr


@pytest.mark.slow
def test_the_time_to_follow(cluster: Cluster, tmp_path: Path) -> None:
    """--timeout ends the following with 1."""
    done = subprocess.run(
        argv(tmp_path, "--timeout", "1500ms"), capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1
    assert "after 1500ms the job is still running; `pairun status mnist --kube" in done.stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--watch", "--json"], "--json and --watch exclude each other"),
        (["--timeout", "3s"], "--timeout has no effect without --watch"),
    ],
)
def test_options_without_an_effect(capsys: Any, words: list[str], says: str) -> None:
    """They are wrong usage, before any cluster is asked."""
    assert main(["status", "mnist", *words]) == 2
    assert f"error[PR801]: {says}" in capsys.readouterr().err
