"""Journals of a job's Pods, read from their logs."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pairun.engines.kubernetes import clusterjournals
from pairun.engines.kubernetes.apierrors import ClusterRefusal
from pairun.engines.kubernetes.cluster import PAGE
from pairun.engines.kubernetes.clusterjournals import (
    MOST_READ,
    read_cluster_instances,
    read_cluster_metrics,
)
from pairun.errors import PairunError
from tests.engines.kubernetes.samples import PODS, Serve, ended, kubeconfig, log_journal, pod, runs
from tests.fakeapi import Answer, Fake, status
from tests.report.page import stories

PROJECT = Path(__file__).parents[3]
Report = Callable[..., tuple[int, str]]


class Job:
    """A job of three Pods: one has ended, one runs, one is still in init."""

    def __init__(self) -> None:
        self.queries: list[dict[str, str]] = []
        self.refuses = False

    def __call__(self, method: str, path: str, query: dict[str, str], body: Any) -> Answer:
        """Answer."""
        if path.endswith("/log"):
            self.queries.append(query)
            if self.refuses:
                return status(403, "Forbidden", "pods/log is forbidden")
            return self.log(path.rsplit("-", maxsplit=1)[-1].partition("/")[0], query)
        if path == PODS:
            exited = [ended("app", 0)]
            pods = [
                pod(index=0, phase="Succeeded", containerStatuses=exited),
                pod(index=1, phase="Running", containerStatuses=[runs("app")]),
                pod(index=2, phase="Pending"),
            ]
            return 200, {"items": pods, "metadata": {}}
        if path.endswith("configmaps"):
            return 200, {"items": [], "metadata": {}}
        return status(404, "NotFound", "not found")

    def log(self, index: str, query: dict[str, str]) -> Answer:
        """The part of a log that is asked for."""
        records = stories.success()
        if index == "2":
            return status(400, "BadRequest", "container is waiting to start")
        if query["container"] == "init":
            return 200, b"ok barrier\n" + log_journal(records[:12])
        if index == "0":
            return 200, b"epoch 1\nepoch 2\n" + log_journal(records) + b"[pairun] bye\n"
        # A command that runs has filled the end of the log.
        began = next(n for n, r in enumerate(records) if r["type"] == "command_begin") + 1
        end = b"epoch 3\n" * 300
        return 200, end if "tailLines" in query else log_journal(records[:began]) + end


def test_a_report_on_a_job_in_a_cluster(serve: Serve) -> None:
    """What ended is whole, what runs has no end yet, what has not begun says what its Pod does."""
    cluster, _ = serve(Job())
    whole, running, waiting = read_cluster_instances(cluster, "mnist")
    assert (whole.label, whole.outcome, whole.exit_code) == ("worker-0", "succeeded", 0)
    assert [p.name for p in whole.phases] == ["init", "runtime"]
    assert (running.outcome, running.phases[1].command is not None) == ("unfinished", True)
    assert "the Pod is running" in running.notes[-1]
    assert waiting.state == "no journal: the Pod is pending"


def test_the_metrics_of_a_job_in_a_cluster(serve: Serve) -> None:
    """They add up the journals of all Pods whose logs show one."""
    cluster, _ = serve(Job())
    text, problems = read_cluster_metrics(cluster, "mnist")
    assert problems == []
    assert text.endswith("# EOF\n")
    lines = [
        line for line in text.splitlines() if "pairun_phase_exits_total" in line and 'init"' in line
    ]
    assert [line.rpartition(" ")[2] for line in lines] == ["2"], text


def test_a_job_whose_logs_show_no_journal_has_no_metrics(serve: Serve) -> None:
    """The text is empty, not a list of zeros."""
    job = Job()
    job.log = lambda *_: (200, b"epoch 1\n")  # type: ignore[method-assign]
    cluster, _ = serve(job)
    assert read_cluster_metrics(cluster, "mnist") == ("", [])


def test_only_parts_of_a_log_are_read(serve: Serve) -> None:
    """A command may have printed gigabytes: each request is bounded."""
    job = Job()
    cluster, _ = serve(job)
    read_cluster_instances(cluster, "mnist")
    assert all("limitBytes" in query for query in job.queries)


class LargeJob:
    """A Job of many Pods, in pages; one in seven failed, the last of these first.

    Attributes:
        logs: the Pods whose logs were read.
    """

    def __init__(self, size: int) -> None:
        self.logs: set[str] = set()
        exited = [ended("app", 0)]
        pods = [pod(index=n, phase="Succeeded", containerStatuses=exited) for n in range(size)]
        for n in range(0, size, 7):
            failed = [ended("app", 1, finishedAt=f"2024-01-01T01:00:00.{size - n:06}Z")]
            pods[n] = pod(index=n, phase="Failed", containerStatuses=failed)
        self.pods = pods

    def __call__(self, method: str, path: str, query: dict[str, str], body: Any) -> Answer:
        """Answer."""
        if path.endswith("/log"):
            self.logs.add(path)
            return 200, log_journal(stories.success())
        if path == PODS:
            first = int(query.get("continue", "0"))
            end = first + int(query["limit"])
            more = {"continue": str(end)} if end < len(self.pods) else {}
            return 200, {"items": self.pods[first:end], "metadata": more}
        if path.endswith("/jobs/mnist"):
            return 200, {"metadata": {"labels": {"pairun/job": "mnist"}}, "spec": {}}
        return status(404, "NotFound", "not found")


@pytest.mark.parametrize("size", [200, 2000])
def test_a_report_reads_few_journals_of_a_large_job(serve: Serve, size: int) -> None:
    """One list, in pages; a log of each Pod that failed, and of some others."""
    job = LargeJob(size)
    cluster, fake = serve(job)
    instances = read_cluster_instances(cluster, "mnist")
    assert len(instances) == size
    assert len(job.logs) == len([i for i in instances if i.journal]) == min(size, MOST_READ)
    assert len(fake.asked) - len(job.logs) == 3 + math.ceil(size / PAGE)
    unread = [i for i in instances if i.journal is None]
    assert {(i.outcome, i.exit_code) for i in unread} <= {("succeeded", 0)}
    assert all("up to 300 journals" in i.state for i in unread)


def test_the_first_failures_of_a_large_job_are_read(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the others the report has what their Pods say."""
    monkeypatch.setattr(clusterjournals, "MOST_READ", 2)
    job = LargeJob(21)
    instances = read_cluster_instances(serve(job)[0], "mnist")
    assert [i.label for i in instances if i.journal] == ["worker-7", "worker-14"]
    assert (instances[0].outcome, instances[0].exit_code) == ("failed", 1)
    assert instances[0].state.startswith("no journal: the Pod is failed: the command ended with 1")


def test_a_missing_right_is_named(serve: Serve) -> None:
    job = Job()
    job.refuses = True
    cluster, _ = serve(job)
    with pytest.raises(ClusterRefusal, match="pods/log"):
        read_cluster_instances(cluster, "mnist")


def test_a_job_that_does_not_exist(serve: Serve) -> None:
    """It is an error, not an empty report."""
    cluster, _ = serve(lambda *_: status(404, "NotFound", "not found"))
    with pytest.raises(PairunError):
        read_cluster_instances(cluster, "nothing")


@pytest.fixture
def report(tmp_path: Path) -> Iterator[Report]:
    """Runs `pairun report` as a process, with a kubeconfig that leads to `Job`."""
    fake = Fake(Job())
    config = kubeconfig(tmp_path / "config", fake.url)

    def run(*argv: str) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-m", "pairun", "report", *argv],
            cwd=tmp_path,
            env={**os.environ, "KUBECONFIG": config, "PYTHONPATH": str(PROJECT)},
            capture_output=True,
            text=True,
        )
        return done.returncode, done.stdout + done.stderr

    yield run
    fake.close()


def test_the_page_of_a_job_by_its_name(report: Report) -> None:
    """A name that is no file is a job's; the page is about its Pods."""
    code, page = report("--html", "-", "mnist")
    assert code == 0
    assert "<title>mnist: unfinished</title>" in page
    assert "the Pod is pending" in page


def test_a_file_wins_over_a_job(report: Report, tmp_path: Path) -> None:
    """A folder of that name is read, unless an option names the cluster."""
    code, text = report("mnist")
    assert (code, "worker-0: succeeded, exit code 0" in text) == (0, True)
    stories.write(tmp_path / "mnist", {"local-0": stories.success()})
    assert "local-0: succeeded" in report("mnist")[1]
    assert "worker-0: succeeded" in report("--namespace", "space", "mnist")[1]


def test_without_a_cluster_a_name_is_a_file(report: Report, tmp_path: Path) -> None:
    """Without a kubeconfig, a missing file is reported, not a missing cluster."""
    (tmp_path / "config").unlink()
    code, text = report("nothing")
    assert code == 1
    assert "error[PR810]: nothing: No such file or directory" in text
