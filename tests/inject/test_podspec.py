"""What a Pod gets, and that it runs as before with it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.inject.workloads import IMAGE, POD, injected, refusals, run_pod

SHELL = """\
apiVersion: v1
kind: Pod
metadata: {name: train}
spec:
  containers:
  - {name: main, image: busybox, command: [sh, -c, COMMAND], env: [{name: WHO, value: me}]}
"""


@pytest.mark.slow
def test_a_command_runs_behind_pid_1(tmp_path: Path) -> None:
    """The container's own command runs, with its words and its exit code as they are."""
    text = SHELL.replace("COMMAND", "'echo \"$WHO: $0 $1\"; exit 7', \"a  b\", '$HOME'")
    init, main = run_pod(yaml.safe_load(injected(text)), tmp_path)
    assert init.code == 0, init.said
    assert main is not None
    assert (main.code, "me: a  b $HOME\n" in main.said) == (7, True), main.said


@pytest.mark.slow
def test_a_failure_is_explained(tmp_path: Path) -> None:
    """The termination message says why the command died."""
    message = tmp_path / "message"
    message.touch()
    text = SHELL.replace(
        "COMMAND", "'echo \"ModuleNotFoundError: No module named apex\" >&2; exit 1'"
    )
    text = text.replace("image: busybox", f"image: busybox, terminationMessagePath: {message}")
    _, main = run_pod(yaml.safe_load(injected(text)), tmp_path / "volume")
    assert main is not None
    assert main.code == 1
    assert "apex" in message.read_text()


def test_arguments_stay_where_they_are() -> None:
    """Only the command changes: its arguments are the container's own, which kubelet expands."""
    text = POD.replace("'exit 3']", "'echo $(X)']\n    args: [one, $(TWO)]")
    (container,) = yaml.safe_load(injected(text))["spec"]["containers"]
    assert container["command"] == ["/usr/local/pai/runtime", "--", "sh", "-c", "echo $(X)"]
    assert container["args"] == ["one", "$(TWO)"]


def test_the_entrypoint_of_an_image() -> None:
    """Where the container has no command, the given one is written before its arguments."""
    text = POD.replace("""command: ["sh", -c, 'exit 3']""", "args: [--verbose]")
    assert "PR821" in refusals(text)[0]
    (container,) = yaml.safe_load(injected(text, entrypoint=["/run", "$(X)"]))["spec"]["containers"]
    assert container["command"] == ["/usr/local/pai/runtime", "--", "/run", "$$(X)"]
    assert container["args"] == ["--verbose"]


def test_the_security_of_the_pod_holds_for_init() -> None:
    """Init runs as the main container does, without its privileges."""
    context = "{runAsUser: 1000, runAsNonRoot: true, privileged: true, capabilities: {add: [A], drop: [ALL]}}"
    text = POD.replace("    image", f"    securityContext: {context}\n    image")
    init = yaml.safe_load(injected(text))["spec"]["initContainers"][0]
    assert init["securityContext"] == {
        "runAsUser": 1000, "runAsNonRoot": True, "capabilities": {"drop": ["ALL"]},
    }  # fmt: skip
    assert init["image"] == IMAGE
    assert {"name": "PAIRUN_APP_UID", "value": "1000"} in init["env"]


def test_a_pod_that_may_not_run_as_root() -> None:
    """Where the user's image names the user, the init container gets one that is not root."""
    text = POD.replace("  containers:", "  securityContext: {runAsNonRoot: true}\n  containers:")
    init = yaml.safe_load(injected(text))["spec"]["initContainers"][0]
    assert init["securityContext"] == {"runAsUser": 65534}
    text = text.replace("runAsNonRoot: true", "runAsNonRoot: true, runAsUser: 1000")
    assert "securityContext" not in yaml.safe_load(injected(text))["spec"]["initContainers"][0]


@pytest.mark.parametrize(
    ("seconds", "expected"), [("", "28s"), ("60", "58s"), ("3", "1.5s"), ("0", None)]
)
def test_the_grace_time(seconds: str, expected: str | None) -> None:
    """PID 1 has the Pod's own grace time, less what kubelet needs."""
    field = f"  terminationGracePeriodSeconds: {seconds}\n" if seconds else ""
    pod = yaml.safe_load(injected(POD.replace("  containers:", f"{field}  containers:")))
    env = {v["name"]: v.get("value") for v in pod["spec"]["containers"][0]["env"]}
    assert env.get("PAIRUN_GRACE") == expected


def test_what_is_there_stays() -> None:
    """Init containers, volumes, variables and mounts of the Pod come first and stay as they are."""
    text = POD.replace(
        "  containers:",
        "  initContainers: [{name: own, image: a}]\n  volumes:\n  - name: data\n    emptyDir: {}\n"
        "  containers:",
    ).replace("    command", "    env:\n    - {name: FC_POD_NAME, value: mine}\n    command")
    spec = yaml.safe_load(injected(text))["spec"]
    assert {c["name"] for c in spec["initContainers"]} == {"own", "pairun-init"}
    assert [v["name"] for v in spec["volumes"]] == ["data", "pairun"]
    names = [v["name"] for v in spec["containers"][0]["env"]]
    assert (names[0], names.count("FC_POD_NAME")) == ("FC_POD_NAME", 1)


@pytest.mark.slow
def test_a_failed_container_is_kept(tmp_path: Path) -> None:
    """With --hold, a container that failed stays, in an image without any program too."""
    pod = yaml.safe_load(injected(SHELL.replace("COMMAND", "exit 5"), hold="1s"))
    _, main = run_pod(pod, tmp_path)
    assert main is not None
    assert main.code == 5
    assert "the container is kept for 1s" in main.said
    assert "-c main" in main.said


@pytest.mark.slow
def test_a_playbook(tmp_path: Path) -> None:
    """The tasks of a playbook run before the command."""
    tasks = [
        {
            "before": "user_command",
            "id": "hello",
            "name": "Hello",
            "cmd": {"argv": ["echo", "hi there"]},
        }
    ]
    pod = yaml.safe_load(injected(SHELL.replace("COMMAND", "exit 0"), playbook={"runtime": tasks}))
    _, main = run_pod(pod, tmp_path)
    assert main is not None
    assert "hi there" in main.said, main.said


def test_no_text_of_the_manifest_is_rendered() -> None:
    """Dollar signs of the command reach the init container as data that kubelet leaves alone."""
    pod = yaml.safe_load(injected(POD.replace("exit 3", "echo $(POD) {{ 7*7 }}")))
    env = {v["name"]: v.get("value", "") for v in pod["spec"]["initContainers"][0]["env"]}
    assert not [name for name, value in env.items() if "$" in value]
    assert json.loads(env["PAIRUN_COMMAND"]) == ["sh", "-c", "echo $(POD) {{ 7*7 }}"]
