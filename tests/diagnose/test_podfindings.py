"""What Kubernetes' objects in a job's folder add to its logs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pairun.diagnose.gathering import answer
from pairun.diagnose.logfiles import files_in
from pairun.diagnose.table import Table
from tests.diagnose.clusterdata import Object, as_json, as_yaml, ended, event, node, pod, waiting
from tests.diagnose.jobs import KEY_ERROR, incident_of, watchdog, write

NO_NODE = "0/4 nodes are available: 4 Insufficient nvidia.com/gpu."


def restarted(reason: str, code: int, *, ready: bool = True, count: int = 1) -> Object:
    """The status of a container that ended, and runs again."""
    last = {
        "terminated": {"exitCode": code, "reason": reason, "finishedAt": "2026-03-01T12:04:20Z"}
    }
    container = {
        "name": "app",
        "ready": ready,
        "restartCount": count,
        "state": {"running": {"startedAt": "2026-03-01T12:05:00Z"}},
        "lastState": last,
    }
    return {"containerStatuses": [container]}


@pytest.mark.parametrize("form", [as_json, as_yaml])
@pytest.mark.parametrize(
    ("objects", "klass"),
    [
        ([pod("job-worker-0", **ended(137, "OOMKilled"))], "host_oom"),
        ([pod("job-worker-0", **ended(139))], "segfault"),
        ([pod("job-worker-0", **ended(127))], "command_not_found"),
        ([pod("job-worker-0", **ended(3))], "child_failed"),
        ([pod("w-0", reason="Evicted", message="The node was low on resource: memory.")], "evicted"),
        ([pod("w-0", reason="OutOfnvidia.com/gpu")], "unschedulable"),
        ([pod("w-0", reason="NodeLost")], "node_stuck"),
        ([pod("w-0", phase="Running", **waiting("CrashLoopBackOff", "back-off",
              {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}))], "host_oom"),
        ([pod("w-0", phase="Pending", **waiting("ErrImageNeverPull"))], "image_missing"),
        ([pod("w-0", phase="Pending", **waiting("CreateContainerConfigError"))], "container_setup_error"),
        ([pod("w-0", phase="Pending", node="", conditions=[
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": NO_NODE}])],
         "unschedulable"),
        ([pod("w-0", conditions=[{"type": "DisruptionTarget", "status": "True",
              "reason": "PreemptionByScheduler"}], **ended(143))], "evicted"),
        ([event("w-0", "FailedScheduling", NO_NODE)], "unschedulable"),
        ([event("w-0", "Evicted", "The node was low on resource: ephemeral-storage.")], "evicted"),
        ([event("w-0", "Preempted", "by default/other on node-a")], "evicted"),
        ([event("w-0", "Failed", "Error: ErrImagePull"), event("w-0", "BackOff", "Back-off pulling image")],
         "image_missing"),
        ([event("w-0", "NodeNotReady", "Node is not ready")], "node_stuck"),
        ([node("node-a", "Unknown"), node("node-b")], "node_stuck"),
        ([event("w-0", "FailedScheduling", NO_NODE), event("w-0", "Scheduled"), event("w-0", "Started")],
         "none"),
        ([pod("w-0", phase="Succeeded", **ended(0, "Completed"))], "none"),
        ([pod("w-0", phase="Running", containerStatuses=[{"name": "app", "state": {"running": {}}}])],
         "none"),
    ],
)  # fmt: skip
def test_objects_alone_tell_why(
    form: Callable[..., str], objects: list[Object], klass: str, tmp_path: Path, table: Table
) -> None:
    """States, reasons, exit codes, conditions and Events; what a Pod has overcome does not count."""
    incident = incident_of(write(tmp_path, {"objects.txt": form(*objects)}), table)

    assert incident.diagnosis.klass == klass


def test_the_killed_rank_is_the_first(tmp_path: Path, table: Table) -> None:
    """The log of a container that the kernel killed ends without an error; its Pod names the rank."""
    logs = {f"worker-{n}.log": watchdog(n, f"12:1{n}:20") for n in (0, 1, 3)}
    logs["worker-2.log"] = "2026-03-01 12:04:16 step 120 loss 0.71\n"
    states = [pod(f"job-worker-{n}", **ended(1)) for n in (0, 1, 3)]
    states.append(pod("job-worker-2", node="node-c", **ended(137, "OOMKilled")))

    incident = incident_of(write(tmp_path, {**logs, "pods.json": as_json(*states)}), table)

    assert incident.first is not None
    assert incident.first.label == "worker-2"
    assert incident.diagnosis.klass == "host_oom"
    assert incident.diagnosis.source == "Kubernetes"
    assert incident.diagnosis.evidence[0].file.endswith("pods.json")
    assert len(incident.members) == 4


def test_the_end_of_a_silent_container_is_kubernetes_time(tmp_path: Path, table: Table) -> None:
    """The log of the killed container ends before another rank raises; the container ends after it."""
    logs = {"worker-0.log": "2026-03-01 11:58:50 INFO step 90\n", "worker-1.log": KEY_ERROR}
    states = [
        pod("worker-0", **ended(137, "OOMKilled", at="2026-03-01T12:13:00Z")),
        pod("worker-1", node="node-b", **ended(1, at="2026-03-01T12:04:17Z")),
    ]

    incident = incident_of(write(tmp_path, {**logs, "pods.json": as_json(*states)}), table)

    assert incident.first is not None
    assert (incident.first.label, incident.diagnosis.klass) == ("worker-1", "user_code_error")
    assert [c.after_s for c in incident.consequences] == [523.13]


def test_an_exit_code_does_not_outrank_the_log(tmp_path: Path, table: Table) -> None:
    """The Pod that ended first has a log, which shows the cause."""
    logs = {"worker-0.log": watchdog(0, "12:14:20"), "worker-1.log": KEY_ERROR}
    states = [
        pod("worker-0", **ended(137, at="2026-03-01T12:15:00Z")),
        pod("worker-1", **ended(1, at="2026-03-01T12:04:20Z")),
    ]

    incident = incident_of(write(tmp_path, {**logs, "pods.yaml": as_yaml(*states)}), table)

    assert incident.first is not None
    assert incident.first.label == "worker-1"
    assert incident.diagnosis.klass == "user_code_error"


def test_without_a_cause_the_first_end_counts(tmp_path: Path, table: Table) -> None:
    """Kubernetes records which container ended before the others."""
    logs = {f"worker-{n}.log": f"2026-03-01 12:04:1{n} step 120 loss 0.7\n" for n in range(3)}
    states = [
        pod(f"worker-{n}", **ended(9, at=f"2026-03-01T12:0{5 + (n != 1)}:00Z")) for n in range(3)
    ]

    incident = incident_of(write(tmp_path, {**logs, "pods.json": as_json(*states)}), table)

    assert incident.first is not None
    assert incident.first.label == "worker-1"
    assert "before the others" in incident.decided_by


def test_a_pod_that_never_started_is_the_one_that_others_wait_for(
    tmp_path: Path, table: Table
) -> None:
    """It has no log, and its number counts in a role: it is no launcher."""
    names = ("ft-master-0", "ft-worker-0", "ft-worker-1")
    failed = "torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError\n"
    logs = {f"{name}.log": f"2026-03-01 12:04:16 waiting\n{failed}" for name in names}
    scheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    states = [pod(name, **ended(1)) for name in names]
    unplaced = {**scheduled, "message": NO_NODE}
    states.append(pod("ft-worker-2", phase="Pending", node="", conditions=[unplaced]))
    incident = incident_of(write(tmp_path, {**logs, "pods.json": as_json(*states)}), table)
    assert incident.first is not None
    assert incident.first.label == "ft-worker-2"


@pytest.mark.parametrize("folder", ["", "train-worker-0/"])
@pytest.mark.parametrize("lost", [(), (0, 1, 3)])
def test_the_state_of_a_pod_with_several_ranks_is_no_ranks(
    folder: str, lost: tuple[int, ...], tmp_path: Path, table: Table
) -> None:
    """The number in its name is that of the Pod, also if a rank has the same one."""
    peer = (
        "RuntimeError: [gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.3]:41\n"
    )
    logs = {f"{folder}rank-{n}.log": "step 1\n" + peer * (n in lost) for n in range(4)}
    for code, reason in ((137, "OOMKilled"), (1, "Error")):
        state = pod("train-worker-0", **ended(code, reason))
        incident = incident_of(write(tmp_path, {**logs, "pods.json": as_json(state)}), table)
        if code == 137:
            assert incident.first is not None
            assert (incident.first.label, incident.first.rank) == ("train-worker-0", None)
            assert incident.diagnosis.klass == "host_oom"
        elif lost:
            assert incident.first is not None
            assert incident.first.rank == 2
        else:
            assert incident.first is None


def test_one_pod_of_several_is_its_rank(tmp_path: Path, table: Table) -> None:
    """Beside the logs of four ranks, Pod 2 of four is rank 2."""
    logs = {f"rank-{n}.log": "step 1\n" for n in range(4)}
    state = as_json(pod("train-worker-2", **ended(137, "OOMKilled")))
    incident = incident_of(write(tmp_path, {**logs, "pods.json": state}), table)
    assert incident.first is not None
    assert incident.first.rank == 2


def test_only_nodes_of_the_job_count(tmp_path: Path, table: Table) -> None:
    """Another node of the cluster that is not ready explains nothing."""
    objects = [pod("w-0", phase="Running"), node("node-a"), node("node-z", "Unknown")]

    incident = incident_of(write(tmp_path, {"all.json": as_json(*objects)}), table)

    assert incident.diagnosis.klass == "none"


def test_pods_of_other_jobs_do_not_count(tmp_path: Path, table: Table) -> None:
    """The list of a namespace holds Pods whose names differ from those of the logs."""
    logs = {f"worker-{n}.log": watchdog(n, "12:14:20") for n in range(2)}
    states = [pod(f"worker-{n}", **ended(1)) for n in range(2)]
    states.append(pod("notebook-7", **ended(137, "OOMKilled")))

    incident = incident_of(write(tmp_path, {**logs, "pods.json": as_json(*states)}), table)

    assert incident.diagnosis.klass == "nccl_timeout"


def test_json_of_other_programs_is_a_log(tmp_path: Path, table: Table) -> None:
    """A broken object or JSON lines are read as text."""
    text = '{"apiVersion": "v1", "kind": "Pod", "status": {"reason": "Evicted"\n'

    incident = incident_of(write(tmp_path, {"cut.json": text}), table)

    assert incident.diagnosis.klass == "evicted"


def test_a_framework_records_its_retries(tmp_path: Path, table: Table) -> None:
    """FrameworkController keeps how the last attempt of each task ended, and the number of retries."""
    completion = {"code": 137, "phrase": "Failed", "pod": {"containers": [
        {"name": "app", "code": 137, "reason": "OOMKilled"}]}}  # fmt: skip
    attempt = {"id": 2, "podName": "f-worker-0", "podUID": "u", "podNodeName": "node-a",
               "completionStatus": completion, "completionTime": "2026-03-01T12:04:20Z"}  # fmt: skip
    framework = {
        "apiVersion": "frameworkcontroller.microsoft.com/v1", "kind": "Framework", "metadata": {"name": "f"},
        "status": {"retryPolicyStatus": {"totalRetriedCount": 2}, "attemptStatus": {
            "completionStatus": {"code": 137, "trigger": {"taskRoleName": "worker", "taskIndex": 0}},
            "taskRoleStatuses": [{"name": "worker", "taskStatuses": [{"index": 0, "attemptStatus": attempt}]}]}},
    }  # fmt: skip
    write(tmp_path, {"framework.json": as_json(framework)})

    result = answer(files_in([str(tmp_path)]), table, 60)

    assert result.incident is not None
    assert result.incident.diagnosis.klass == "host_oom"
    assert result.incident.members[0].label == "worker-0"
    assert result.advice is not None
    assert result.advice.attempts == 3
    assert "does not keep" in result.advice.words


def test_the_task_that_ended_a_framework_is_the_first(tmp_path: Path, table: Table) -> None:
    """All of them end within the same second."""
    tasks = [
        {"index": n, "attemptStatus": {"podName": f"f-worker-{n}", "completionTime": "2026-03-01T12:04:20Z",
         "completionStatus": {"code": code, "pod": {"containers": [{"name": "app", "code": code}]}}}}
        for n, code in enumerate((3, 3, 3))
    ]  # fmt: skip
    framework = {
        "apiVersion": "frameworkcontroller.microsoft.com/v1", "kind": "Framework", "metadata": {"name": "f"},
        "status": {"attemptStatus": {
            "completionStatus": {"code": 3, "trigger": {"taskRoleName": "worker", "taskIndex": 1}},
            "taskRoleStatuses": [{"name": "worker", "taskStatuses": tasks}]}},
    }  # fmt: skip
    logs = {f"worker-{n}.log": "2026-03-01 12:04:17 step 120 loss 0.7\n" for n in range(3)}
    incident = incident_of(write(tmp_path, {**logs, "f.json": as_json(framework)}), table)
    assert incident.first is not None
    assert incident.first.label == "worker-1"


def test_the_only_pod_of_a_lost_node_that_did_not_end_is_the_first(
    tmp_path: Path, table: Table
) -> None:
    """Its log shows nothing, and the other Pod only reports an exit code."""
    states = [pod("w-0", node="node-b", **ended(1)), pod("w-1", phase="Running")]
    objects = as_json(*states, node("node-a", "Unknown"), node("node-b"))
    incident = incident_of(write(tmp_path, {"all.json": objects}), table)
    assert incident.first is not None
    assert (incident.first.label, incident.diagnosis.klass) == ("w-1", "node_stuck")


OWN_DIAGNOSIS = """\
[PAI_RUNTIME_ERROR_START]
exitCode: 1
diagnosis:
  class: "gpu_oom"
  fault: "user"
  retry: "after_fix"
  confidence: 0.9
  headline: "GPU memory is full"
"""
INIT_FAILED = """\
ok       barrier: Every task has an address (122ms)
failed   image_check: The image exists (2ms)
         there is no image a/b:7 [permanent; fault: user]
init phase: failure, exit code 254
"""


@pytest.mark.parametrize(
    ("message", "klass", "headline"),
    [
        (OWN_DIAGNOSIS, "gpu_oom", "GPU memory is full"),
        (INIT_FAILED, "image_missing", "pairun's task image_check failed: there is no image a/b:7"),
        (
            "step 3\nKeyError: 'label'\n",
            "user_code_error",
            "the job's own code failed: KeyError: 'label'",
        ),
    ],
)
def test_a_termination_message_tells_why(
    message: str, klass: str, headline: str, tmp_path: Path, table: Table
) -> None:
    """PID 1's diagnosis, init's failed task, or the end of a program's log, if no log is there."""
    state = ended(1)
    state["containerStatuses"][0]["state"]["terminated"]["message"] = message

    incident = incident_of(write(tmp_path, {"p.json": as_json(pod("w-0", **state))}), table)

    assert (incident.diagnosis.klass, incident.diagnosis.headline) == (klass, headline)


@pytest.mark.parametrize(
    ("reason", "code", "count", "klass"),
    [("OOMKilled", 137, 1, "host_oom"), ("Error", 139, 3, "segfault"), ("Error", 3, 1, "child_failed")],
)  # fmt: skip
@pytest.mark.parametrize("is_beside_another", [False, True])
def test_a_container_that_runs_again_is_said_to(
    reason: str,
    code: int,
    count: int,
    klass: str,
    is_beside_another: bool,
    tmp_path: Path,
    table: Table,
) -> None:
    """How it ended before counts little, and forbids no retry: the job goes on."""

    def lines(ready: bool) -> tuple[str, str | None]:
        status = restarted(reason, code, ready=ready, count=count)
        text = as_json(pod("w-0", phase="Running", **status))
        other = {"w-1.log": "step 1\n"} if is_beside_another else {}
        folder = write(tmp_path / str(ready), {"pods.txt": text, **other})
        incident = incident_of(folder, table)
        assert incident.diagnosis.klass == klass
        return incident.diagnosis.headline, incident.diagnosis.retry

    headline, retry = lines(ready=True)
    restarts = "1 restart" if count == 1 else f"{count} restarts"
    assert headline.endswith(f"; it runs again since 12:05:00 ({restarts})")
    assert retry != "after_fix"
    headline, retry = lines(ready=False)
    assert "runs again" not in headline
    assert (retry == "after_fix") == (klass == "host_oom")


def test_what_kubectl_prints_for_people_is_a_log(tmp_path: Path, table: Table) -> None:
    """The killed Pod's name in it gives no rank a state."""
    text = "Name:      job-worker-1\nNamespace: default\nStatus:    Failed\n"
    text += (
        "    State:          Terminated\n      Reason:       OOMKilled\n      Exit Code:    137\n"
    )
    logs = {f"worker-{n}.log": watchdog(n, "12:14:20") for n in range(3)}
    incident = incident_of(write(tmp_path, {**logs, "pods.txt": text}), table)
    assert incident.first is None
    assert [m.rank for m in incident.members if m.diagnosis.klass == "host_oom"] == [None]
