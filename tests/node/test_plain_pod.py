"""A plain Pod from `kubectl apply` to exit code, logs and termination message."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from tests.node.conftest import Node, give_folders
from tests.podman import ROOT

Object = dict[str, Any]

INIT = """\
initPlugins:
- name: frameworkBarrier
  command: pai/frameworkBarrier framework.json
- name: frameworkParser
  command: frameworkParser.py framework.json
- name: greet
  command: echo "GREETING=hello" > "$PAI_RUNTIME_DIR/env"
"""
STOPPED = """\
trap 'echo saved > /data/checkpoint; exit 7' TERM
echo working
touch /data/ready
while :; do sleep 0.1; done
"""
HANDLERS = [
    {"id": f"bye_{event}", "name": f"After {event}", "event": event,
     "file": {"path": f"/data/after-{event}", "content": event}}
    for event in ("success", "failure", "signal")
]  # fmt: skip
AT_THE_END = {
    "before": "user_command", "id": "watched", "name": "What is done at the end is registered",
    "cmd": {"argv": ["true"]}, "on_exit": HANDLERS,
}  # fmt: skip


@pytest.fixture
def example(runtime_image: str, debian: str) -> list[Object]:
    """The example's objects, with images that this node has."""
    text = (ROOT / "examples" / "plain-pod.yaml").read_text()
    for theirs, ours in (
        ("registry.example.com/pairun:latest", runtime_image),
        ("ubuntu:latest", debian),
    ):
        assert text.count(theirs) == 1
        text = text.replace(theirs, ours)
    return list(yaml.safe_load_all(text))


def test_the_example(node: Node, example: list[Object]) -> None:
    """The example runs as it stands: its plugin, its command, both logs of kubectl."""
    node.apply(*example)
    ended = node.ended("job")
    assert (ended.code("init"), ended.code("app")) == (0, 0), ended.story
    assert "init phase: success" in ended.said["init"]
    assert "hi\n" in ended.said["app"]
    assert "before the command" in ended.said["app"]


@pytest.fixture
def pod(node: Node, example: list[Object]) -> Object:
    """The example's Pod with folders of the host; what goes with it is applied."""
    *others, pod = example
    node.apply(*others)
    give_folders(pod["spec"], node)
    return pod


def configure(pod: Object, command: str, **more: Any) -> None:
    """Give a Pod its command and its init plugins."""
    config = {"commands": [command], "extras": {"pairun": {"runtime": [AT_THE_END]}}, **more}
    given = {"RUNTIME_CONFIG": json.dumps(config), "INIT_CONFIG": INIT}
    for variable in pod["spec"]["initContainers"][0]["env"]:
        if variable["name"] in given:
            variable["value"] = given[variable["name"]]


def test_success(node: Node, pod: Object) -> None:
    """The command runs with what init worked out; both containers and their logs say so."""
    configure(pod, 'echo "$GREETING from $PAI_HOST_IP_main_0"; echo oops >&2')
    node.apply(pod)
    ended = node.ended("job")
    assert (ended.code("init"), ended.code("app")) == (0, 0), ended.story
    line = f"hello from {ended.pod['status']['podIP']}"
    assert line in ended.said["app"].splitlines()
    assert "message" not in ended.state("app")
    assert "init phase: success" in ended.said["init"]
    assert ended.log("init.log").startswith(ended.said["init"])
    assert "disabled" not in ended.log("init.log")
    assert ended.log("user-stdout/current") == f"{line}\n"
    assert sorted(ended.log("user-all/current").splitlines()) == [line, "oops"]
    assert "[openpai-runtime] [INFO] USER COMMAND END" in ended.log("runtime.log")
    assert [p.name for p in node.data.glob("after-*")] == ["after-success"]


def test_failure(node: Node, pod: Object) -> None:
    """The Pod fails with the code that its exit spec has for this, and its status tells why."""
    configure(pod, "echo trouble >&2; no-such-command")
    node.apply(pod)
    ended = node.ended("job")
    assert ended.pod["status"]["phase"] == "Failed"
    state = ended.state("app")
    assert state["exitCode"] == 220, ended.story
    assert state["message"].startswith("[PAI_RUNTIME_ERROR_START]\n")
    assert "originUserExitCode: 127\n" in state["message"]
    assert "trouble" in state["message"]
    assert ended.log("user-stderr/current").startswith("trouble\n")
    assert [p.name for p in node.data.glob("after-*")] == ["after-failure"]


def test_init_fails(node: Node, pod: Object) -> None:
    """A Pod whose settings are wrong never starts its command, and its status shows the error."""
    configure(pod, "true", surprise=1)
    node.apply(pod)
    ended = node.ended("job")
    state = ended.state("init")
    assert state["exitCode"] == 1
    assert "error[" in state["message"]
    assert "surprise" in state["message"]
    assert "error[" in ended.log("init.log")


def test_deletion(node: Node, pod: Object) -> None:
    """A Pod that is deleted saves its work, runs its exit handlers, and leaves whole logs."""
    configure(pod, STOPPED)
    node.apply(pod)
    node.wait_for_file("ready")
    ended = node.deleted("job")
    # What the exit spec does not know ends with 255; the command's own code is told.
    assert ended.code() == 255, ended.story
    assert (node.data / "checkpoint").read_text() == "saved\n"
    assert [p.name for p in node.data.glob("after-*")] == ["after-signal"]
    assert ended.log("user-all/current").startswith("working\n")
    assert "received SIGTERM from outside this container" in ended.log("runtime.log")
    assert "originUserExitCode: 7\n" in ended.state("app")["message"]
    records = [json.loads(line) for line in ended.log("journal.jsonl").splitlines()]
    assert [r["exit_code"] for r in records if r["type"] == "phase_end"] == [0, 255]
