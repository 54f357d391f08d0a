"""At which line of its file an object of Kubernetes says what counts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from pairun.diagnose.clusterobjects import object_reports
from pairun.diagnose.table import Table
from tests.diagnose.clusterdata import Object, as_json, as_yaml, ended, event, node, pod, waiting
from tests.diagnose.jobs import incident_of, write

NO_NODE = "0/4 nodes are available: 4 Insufficient nvidia.com/gpu."
CRASHED = pod(
    "w-0",
    phase="Running",
    **waiting(
        "CrashLoopBackOff",
        "back-off",
        {"terminated": {"exitCode": 127, "reason": "Error", "message": "/bin/sh: 1: pythn: not found\n"}},
    ),
)  # fmt: skip


def _sorted_json(*objects: Object) -> str:
    """As kubectl prints it: an Event's message precedes its name."""
    return json.dumps(json.loads(as_json(*objects)), indent=4, sort_keys=True)


def _one_each_line(*objects: Object) -> str:
    """As ``jq -c '.items[]'`` prints it."""
    return "".join(json.dumps(each, separators=(",", ":")) + "\n" for each in objects)


@pytest.mark.parametrize("form", [as_json, as_yaml, _sorted_json, _one_each_line])
@pytest.mark.parametrize(
    ("objects", "shown"),
    [
        ([CRASHED], "pythn: not found"),
        ([pod("w-1", **ended(0)), pod("w-0", **ended(137, "OOMKilled"))], "OOMKilled"),
        ([pod("w-1", **ended(0)), pod("w-0", **ended(139))], "139"),
        ([pod("w-0", reason="Evicted", message="The node was low on resource: memory.")], "low on resource"),
        ([pod("w-0", phase="Pending", node="", conditions=[
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": NO_NODE}])],
         "0/4 nodes"),
        ([event("w-1", "Scheduled", "assigned"), event("w-0", "FailedScheduling", NO_NODE)], "0/4 nodes"),
        ([event("w-1", "Started"), event("w-0", "Preempted", "by default/other")], "by default/other"),
        ([node("node-b"), node("node-a", "Unknown")], "the kubelet reports"),
    ],
)  # fmt: skip
def test_the_line_has_what_counts(
    form: Callable[..., str], objects: list[Object], shown: str, tmp_path: Path, table: Table
) -> None:
    """Not only the name of the object, which may be a screen above."""
    text = form(*objects)
    incident = incident_of(write(tmp_path, {"objects.txt": text}), table)
    where = incident.diagnosis.evidence[0]
    lines = text.splitlines()
    assert shown in lines[where.line - 1]
    assert where.line == max(n for n, line in enumerate(lines, 1) if shown in line)


def test_each_object_has_its_own_lines() -> None:
    """The same words in three objects are at three lines."""
    text = as_json(*(pod(f"w-{n}", **ended(137, "OOMKilled")) for n in range(3)))
    reports = object_reports(text.encode(), "pods.json")
    lines = [n for n, line in enumerate(text.splitlines(), 1) if "OOMKilled" in line]
    assert [s.where for each in reports for s in each.signals] == [("pods.json", n) for n in lines]


def test_an_event_in_another_file_is_shown_there(tmp_path: Path, table: Table) -> None:
    """The Pod's state is in one file, and its Events are in the other."""
    files: dict[str, str | bytes] = {
        "events.json": as_json(event("w-0", "FailedScheduling", NO_NODE)),
        "pods.json": as_json(pod("w-0", phase="Pending", node="")),
    }
    incident = incident_of(write(tmp_path, files), table)
    assert incident.diagnosis.klass == "unschedulable"
    assert incident.diagnosis.evidence[0].file.endswith("events.json")


@pytest.mark.parametrize(
    "text",
    [
        b'{"kind": ["Pod"], "metadata": {"name": "a"}}',
        b'{"kind": "Pod", "metadata": {"name": "a"}, "status": "Failed"}',
        b'{"kind": "Pod", "metadata": {"name": "a"}, "status": {"containerStatuses": [7]}}',
        b'{"kind": "Event", "metadata": {"name": "a"}, "involvedObject": "a"}',
        b'{"kind": "Node", "metadata": {"labels": []}}',
    ],
)
def test_an_object_of_another_form_is_no_object(text: bytes) -> None:
    """Any program may write such keys."""
    assert object_reports(text, "a.json") == []


def test_an_event_without_metadata_is_about_its_object(tmp_path: Path, table: Table) -> None:
    """Somebody kept the keys that matter: the eviction counts, not only the node before it."""
    events = [
        event("w-1", "NodeNotReady", "Node is not ready"),
        event("w-1", "TaintManagerEviction", "Marking for deletion Pod cv/w-1"),
    ]
    kept = [{key: value for key, value in each.items() if key != "metadata"} for each in events]
    text = json.dumps({"kind": "List", "items": kept}, indent=1)
    incident = incident_of(write(tmp_path, {"events.json": text}), table)
    assert incident.diagnosis.klass == "evicted"
    assert "another node" in incident.diagnosis.advice
    where = incident.diagnosis.evidence[0]
    shown = text.splitlines()[where.line - 1]
    assert "TaintManagerEviction" in shown or "Marking" in shown
