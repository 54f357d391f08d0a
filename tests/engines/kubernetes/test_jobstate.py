"""The state of a job, from its objects and its Pods."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pairun.cli import main as cli
from pairun.engines.completionpolicy import RolePolicy
from pairun.engines.kubernetes.jobobjects import JobObjects
from pairun.engines.kubernetes.jobstate import JobState, changes, state_of
from pairun.kube.workloads import POD
from tests.calls import calls_of
from tests.engines.kubernetes.samples import (
    EVICTED,
    EVICTION,
    PLACED,
    REPLICATED,
    UNPLACED,
    completed,
    condition,
    failed,
    instances,
    objects,
    pod,
    runs,
    waits,
)

OBSERVED = Path(__file__).parent / "observed"


@pytest.mark.parametrize(
    ("found", "state", "because", "total"),
    [
        (objects("framework", completed("Succeeded")), "succeeded", "", 5),
        (objects("framework", completed("Failed")), "failed", "PodFailed: one", 5),
        (objects("framework", {"status": {"state": "AttemptPreparing"}}), "waiting",
         "AttemptPreparing", 0),
        (objects("framework", {"spec": {"executionType": "Stop"}}), "stopping", "", 0),
        (objects("job", condition("Complete", completions=4)), "succeeded", "", 4),
        (objects("job", condition("Failed")), "failed", "R: m", 1),
        (objects("job", condition("Suspended")), "waiting", "suspended", 1),
        (objects("jobset", condition("Completed", replicatedJobs=REPLICATED)), "succeeded", "", 7),
        (objects("jobset", {"metadata": {"deletionTimestamp": "x"}}), "stopping", "", 0),
        (objects("pod"), "waiting", "", 0),
    ],
)  # fmt: skip
def test_the_state_of_a_job(found: JobObjects, state: str, because: str, total: int) -> None:
    """What the workload's own status says, and how many instances there are to be."""
    now = state_of(found, "default", ())
    assert (now.state, now.because, now.total) == (state, because, total)


def test_plain_pods_are_decided_by_their_completion_policy() -> None:
    """By the job's own policy where it is known, else the first failure counts."""
    pods = instances(failed(0, 7), pod(index=1, phase="Running"))
    assert state_of(objects("pod"), "default", pods).exit_code == 7
    policies = (RolePolicy("worker", 2, -1, 2),)
    found = JobObjects("mnist", POD, None, policies)
    assert state_of(found, "default", pods).state == "running"


def test_an_evicted_plain_pod_fails_its_job_at_once() -> None:
    """While its command still saves its work; the eviction is the reason."""
    evicted = pod(phase="Running", conditions=[*PLACED, EVICTED], containerStatuses=[runs("app")])
    now = state_of(objects("pod"), "d", instances(evicted))
    assert (now.state, now.because, now.exit_code) == ("failed", f"worker-0: {EVICTION}", 1)


STUCK = pod(
    phase="Pending",
    conditions=PLACED,
    initContainerStatuses=[waits("init", "ErrImagePull", "no such image")],
)


STARTING = pod(index=1, phase="Pending", conditions=PLACED)


@pytest.mark.parametrize("found", [objects("pod"), objects("job", {"spec": {"completions": 2}})])
def test_a_job_of_which_nothing_runs_waits_and_says_for_what(
    found: JobObjects, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Images that are pulled or not there make no running job; one container that runs does."""
    state = state_of(found, "d", instances(STARTING, STUCK))
    monkeypatch.setattr("pairun.cli.status.cluster_of", lambda *_: None)
    monkeypatch.setattr("pairun.cli.status.read_job", lambda *_: state)
    assert cli.main(["status", "mnist"]) == 0
    said = capsys.readouterr().out.partition("\n")[0]
    engine = found.kind.engine
    why = "worker-0 is stuck: ErrImagePull: no such image"
    assert said == f"mnist in d ({engine}) is waiting: {why}"
    begun = pod(index=1, phase="Pending", conditions=PLACED, initContainerStatuses=[runs("init")])
    assert state_of(found, "d", instances(STUCK, begun)).state == "running"


def test_the_first_failure_gives_the_jobs_code() -> None:
    """By the time of its end, not by its number."""
    now = state_of(objects("job", condition("Failed")), "d", instances(failed(0, 9), failed(1, 4)))
    assert now.exit_code == 4
    assert now.because == "worker-1: the command ended with 4; R: m"


def test_progress_is_a_line_for_each_change() -> None:
    """Instances that came to the same point share a line; what stays is not told again."""
    found = objects("framework", {"spec": {"taskRoles": [{"taskNumber": 5}]}})
    placed = [pod(index=n, phase="Pending", conditions=PLACED) for n in range(4)]
    waiting = pod(index=4, phase="Pending", conditions=UNPLACED)
    first = state_of(found, "d", instances(*placed, waiting))
    assert changes(None, first) == [
        "worker-0, worker-1, worker-2 and 1 more: starting (4 of 5 starting)",
        "worker-4: unschedulable: 0/3 nodes are available: 3 cpu. (1 of 5 unschedulable)",
    ]
    assert changes(first, first) == []
    then = state_of(found, "d", instances(failed(0, 3), *placed[1:]))
    assert changes(first, then) == [
        "worker-0: failed: the command ended with 3 (1 of 5 failed)",
        "worker-4: the Pod is gone",
    ]
    assert changes(None, state_of(found, "d", ())) == ["no Pod yet"]


def test_ten_times_as_many_pods_take_ten_times_the_work() -> None:
    """Also if each Pod has a reason of its own, and all are replaced."""

    def state(role: str, size: int) -> JobState:
        failing = (waits("app", "ErrImagePull", f"no image {n}") for n in range(size))
        pods = [pod(role, n, phase="Pending", containerStatuses=[s]) for n, s in enumerate(failing)]
        return state_of(objects("job", {"spec": {"completions": size}}), "d", instances(*pods))

    def work(size: int) -> int:
        return calls_of(lambda: changes(state("old", size), state("new", size)))

    assert work(2000) <= 11 * work(200)


@pytest.mark.parametrize(
    ("name", "word", "because"),
    [
        ("jok", "succeeded", ""),
        ("jfail", "failed", "BackoffLimitExceeded: Job has reached the specified backoff limit"),
        ("jperm", "failed", "BackoffLimitExceeded: Job has reached the specified backoff limit"),
        ("jcode", "failed", "PodFailurePolicy: Container app for pod j1/jcode-xkbkv failed with "),
        ("jinit", "waiting", ""),
        ("jgang", "succeeded", ""),
        ("jgevict", "failed", "BackoffLimitExceeded: Job has reached the specified backoff limit"),
        ("jevict", "succeeded", ""),
        ("jev143", "succeeded", ""),
        ("jbidx", "failed", "FailedIndexes: Job has failed indexes"),
        ("jsucc", "succeeded", ""),
        ("sjs", "succeeded", ""),
        ("sfail", "failed", "ReachedMaxRestarts: jobset failed due to reaching max number of "),
        ("sperm", "failed", "FailJobSetFailurePolicyAction: applying FailJobSet failure policy "),
        ("sretry", "succeeded", ""),
        ("ssucc", "succeeded", ""),
        ("sevict", "succeeded", ""),
    ],
)
def test_statuses_of_real_controllers(name: str, word: str, because: str) -> None:
    """Of the Job controller and of JobSet: the outcome is theirs, and so is the reason."""
    workload = json.loads((OBSERVED / f"{name}.json").read_text())
    now = state_of(objects(workload["kind"].lower(), workload), "d", ())
    assert now.state == word
    assert now.because.startswith(because)
    assert bool(now.because) == bool(because)
    assert now.exit_code == {"succeeded": 0, "failed": 1, "waiting": None}[word]


@pytest.mark.parametrize(
    ("engine", "kind", "controller"),
    [
        ("framework", "Framework", "FrameworkController"),
        ("jobset", "JobSet", "the JobSet controller"),
    ],
)
def test_a_workload_on_which_no_controller_acts(engine: str, kind: str, controller: str) -> None:
    """Its status stays empty; one that is only just created, or that has a status, waits."""
    made = {"metadata": {"creationTimestamp": "2024-01-01T00:00:00Z"}}
    assert state_of(objects(engine, made), "d", ()).because == (
        f"no controller has acted on {kind} mnist since 2024-01-01T00:00:00Z: "
        f"check that {controller} runs"
    )
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert (
        state_of(objects(engine, {"metadata": {"creationTimestamp": now}}), "d", ()).because == ""
    )
    touched = {**made, "status": {"restarts": 0, "state": ""}}
    assert state_of(objects(engine, touched), "d", ()).because == ""
