"""Pods in texts that kubectl prints for people."""

from __future__ import annotations

from pathlib import Path

import pytest

from pairun.diagnose.table import Table
from pairun.incident.attempts import answer
from pairun.incident.describedpods import described_pods
from pairun.incident.walking import files_in
from tests.incident.jobs import incident_of, watchdog, write

DESCRIBED = """\
Name:             job-worker-1
Namespace:        default
Node:             node-b/10.0.0.2
Status:           Failed
Containers:
  app:
    State:          Terminated
      Reason:       OOMKilled
      Exit Code:    137
      Finished:     Sun, 01 Mar 2026 12:04:20 +0000
    Ready:          False
Events:           <none>


Name:             job-worker-2
Namespace:        default
Node:             node-c/10.0.0.3
Status:           Running
Containers:
  app:
    State:          Running
      Started:      Sun, 01 Mar 2026 12:00:00 +0000
    Last State:     Terminated
      Reason:       Error
      Exit Code:    134
Events:           <none>
"""
TABLE = """\
NAME           READY   STATUS      RESTARTS      AGE   IP         NODE
job-worker-0   0/1     Error       2 (5m ago)    10m   10.0.0.1   node-a
job-worker-1   0/1     OOMKilled   0             10m   10.0.0.2   node-b
job-worker-2   1/1     Running     0             10m   10.0.0.3   node-c
"""


@pytest.mark.parametrize("text", [DESCRIBED, TABLE])
def test_a_state_belongs_to_its_pods_rank(text: str, tmp_path: Path, table: Table) -> None:
    """The killed rank's log ends without an error, as does that of another one."""
    quiet = "2026-03-01 12:04:16,000 step 120 loss 0.71\n"
    logs = {f"worker-{n}.log": quiet for n in (1, 3)}
    logs |= {f"worker-{n}.log": watchdog(n, "12:14:20") for n in (0, 2)}

    result = answer(files_in([str(write(tmp_path, {**logs, "pods.txt": text}))]), table, 60)

    incident = result.incident
    assert incident is not None
    assert incident.first is not None
    assert result.advice is not None
    assert result.advice.attempts == 1
    assert incident.first.label == "worker-1"
    assert incident.diagnosis.klass == "host_oom"


def test_a_pod_without_a_log_has_no_log_that_ends(tmp_path: Path, table: Table) -> None:
    """The others lost it; all that is known of it is its state."""
    row = "job-worker-1   0/1   CrashLoopBackOff   6 (31s ago)   42m\n"
    text = f"NAME   READY   STATUS   RESTARTS   AGE\n{row}"
    lost = (
        "RuntimeError: [gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.3]:41\n"
    )
    logs = {f"job-worker-{n}.log": f"2026-03-01 12:04:16 step 9\n{lost}" for n in (0, 2, 3)}
    incident = incident_of(write(tmp_path, {**logs, "pods.txt": text}), table)
    assert incident.first is not None
    assert incident.first.label == "job-worker-1"
    assert incident.decided_by.startswith("the Pod of job-worker-1 failed while others report")
    assert "`kubectl logs --previous job-worker-1`" in incident.diagnosis.advice


def test_the_states_of_containers() -> None:
    """State and last state, with their exit codes and times."""
    first, second = described_pods(DESCRIBED.encode(), "a.txt")

    assert (first.name, first.line, first.part("spec")["nodeName"]) == ("job-worker-1", 1, "node-b")
    ended = first.part("status")["containerStatuses"][0]["state"]["terminated"]
    assert (ended["reason"], ended["exitCode"]) == ("OOMKilled", 137)
    assert ended["finishedAt"] == "2026-03-01T12:04:20+00:00"
    lines = DESCRIBED.splitlines()
    assert "OOMKilled" in lines[first.line_of("reason", "OOMKilled") - 1]
    assert "134" in lines[second.line_of("exitCode", 134) - 1]
    [container] = second.part("status")["containerStatuses"]
    assert "running" in container["state"]
    assert container["lastState"]["terminated"]["exitCode"] == 134


@pytest.mark.parametrize(
    "text", ["", "Name: x\n", "step 3 STATUS ok\n", "Namespace: a\nName:  b\n"]
)
def test_other_texts_hold_no_pods(text: str) -> None:
    """A log may contain the same words."""
    assert described_pods(text.encode(), "a.txt") == []
