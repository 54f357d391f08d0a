"""Jobs, JobSets and Frameworks of a real 1.32 cluster, followed and shown from their recordings."""

from __future__ import annotations

import functools
import json
from pathlib import Path

import pytest

from pairun.cli.main import main
from pairun.engines.kubernetes.jobobjects import NoJob
from pairun.engines.kubernetes.watching import follow, read_job
from tests.replay.conftest import Serve
from tests.replay.replaying import Conversation, Replay

pytestmark = pytest.mark.shared

NAMESPACES = {"01": "jobs", "03": "sets", "09": "fw"}
ENDS = {
    ("01", "ok"): ("succeeded", 0, ""),
    ("01", "fail0"): ("failed", 7, "pod-1: the command ended with 7"),
    ("01", "fail2"): ("failed", 7, "pod-1: the command ended with 7"),
    ("01", "evict0"): ("failed", 137, "pod-0: evicted (EvictionByEvictionAPI: "),
    ("01", "deleted0"): ("failed", 137, "pod-0: the command ended with 137"),
    ("01", "deleted2"): ("succeeded", 0, ""),
    ("03", "ok"): ("succeeded", 0, ""),
    ("03", "second"): ("succeeded", 0, ""),
    ("09", "ok"): ("succeeded", 0, ""),
    ("09", "gone"): ("succeeded", 0, ""),
}
"""State, exit code and the beginning of the reason at the end of each recorded job."""

conversation = functools.cache(Conversation)


@pytest.mark.parametrize(("name", "job"), ENDS)
def test_a_recorded_job_is_followed_to_its_end(serve: Serve, name: str, job: str) -> None:
    """`FailureTarget` and `SuccessCriteriaMet` come earlier, and are no end."""
    cluster, _ = serve(Replay(conversation(name), job), NAMESPACES[name])
    *earlier, last = follow(cluster, job)
    assert earlier
    state, code, because = ENDS[name, job]
    assert (last.state, last.exit_code, last.because[: len(because)]) == (state, code, because)


@pytest.mark.parametrize(("name", "job"), ENDS)
def test_each_moment_of_a_recorded_job_has_a_state(serve: Serve, name: str, job: str) -> None:
    """`status` reads what the server had at any time; an end is for good."""
    replay = Replay(conversation(name), job)
    cluster, _ = serve(replay, NAMESPACES[name])
    states: list[str] = []
    while not (states and states[-1] == ENDS[name, job][0]):
        replay.now += 3
        states.append(read_job(cluster, job).state)
    assert set(states) <= {"waiting", "running", ENDS[name, job][0]}


@pytest.mark.parametrize(
    ("job", "phase", "reason"),
    [
        ("noimage", "stuck", "ErrImageNeverPull"),
        ("nofit", "unschedulable", "0/1 nodes are available: 1 Insufficient cpu"),
    ],
)
def test_a_recorded_job_that_cannot_start(serve: Serve, job: str, phase: str, reason: str) -> None:
    replay = Replay(conversation("01"), job)
    cluster, _ = serve(replay, "jobs")
    replay.now += 5
    [instance] = read_job(cluster, job).instances
    assert (instance.phase, reason in instance.reason) == (phase, True), instance.reason


def test_a_recorded_job_that_is_deleted_is_gone(serve: Serve) -> None:
    cluster, _ = serve(Replay(conversation("01"), "jd-background"), "jobs")
    with pytest.raises(NoJob):
        list(follow(cluster, "jd-background"))


def test_the_commands_on_a_recorded_job(
    serve: Serve, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    replay = Replay(conversation("01"), "ok")
    serve(replay, "jobs")
    replay.now += 6
    log = "/api/v1/namespaces/jobs/pods/ok-0-hx6q4/log"
    replay.told["GET", log] = conversation("01").said("log while it runs")
    where = ["ok", "--kubeconfig", str(tmp_path / "config"), "-n", "jobs"]
    assert main(["status", *where]) == 0
    assert "ok in jobs (job) is succeeded" in capsys.readouterr().out
    assert main(["status", *where, "--json"]) == 0
    assert [i["phase"] for i in json.loads(capsys.readouterr().out)["instances"]] == [
        "succeeded"
    ] * 2
    assert main(["logs", *where, "--role", "pod", "--index", "0"]) == 0
    assert capsys.readouterr().out == "hello from 0\n"
    assert main(["status", *where, "--watch"]) == 0
    assert "the job has succeeded (exit code 0)" in capsys.readouterr().err
