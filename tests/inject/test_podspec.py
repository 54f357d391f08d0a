"""What a Pod gets, and that it runs as before with it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml

from pairun.errors import Problems, Source
from pairun.inject.injecting import uninject
from tests.inject.workloads import HOLD, IMAGE, POD, injected, refusals, run_pod

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


def test_the_platform_chooses_the_uid_of_a_pod_that_may_not_run_as_root() -> None:
    """A uid of pairun's would be outside the range that OpenShift gives to a namespace."""
    text = POD.replace("  containers:", "  securityContext: {runAsNonRoot: true}\n  containers:")
    assert "securityContext" not in yaml.safe_load(injected(text))["spec"]["initContainers"][0]
    (said,) = refusals(text)
    assert "warning[PR826]" in said
    assert "runAsUser" in said
    text = text.replace("runAsNonRoot: true", "runAsNonRoot: true, runAsUser: 1000")
    assert refusals(text) == []


RESOURCES = "{limits: {cpu: 4, memory: 8Gi, nvidia.com/gpu: 1}}"


@pytest.mark.parametrize(
    ("resources", "asked", "expected"),
    [
        (RESOURCES, None, {"cpu": 4, "memory": "8Gi"}),
        (RESOURCES.replace("}}", "}, requests: {cpu: 4, memory: 8Gi}}"), {}, {"cpu": 4, "memory": "8Gi"}),
        (RESOURCES, {"cpu": "1"}, {"cpu": "1", "memory": "8Gi"}),
        (RESOURCES.replace("}}", "}, requests: {cpu: 2}}"), {}, None),
        ("{limits: {cpu: 4}}", {}, None),
        ("{}", {}, None),
    ],
)  # fmt: skip
def test_a_pod_keeps_its_quality_of_service(
    resources: str, asked: dict[str, str] | None, expected: dict[str, str] | None
) -> None:
    """In a Guaranteed Pod, the init container's requests equal its limits, whatever is asked."""
    text = POD.replace("    image", f"    resources: {resources}\n    image")
    more = {} if asked is None else {"resources": {"requests": asked, "limits": asked}}
    more = {"resources": {}} if asked == {} else more
    init = yaml.safe_load(injected(text, **more))["spec"]["initContainers"][0]
    made = {"requests": expected, "limits": expected} if expected else None
    assert init.get("resources") == made


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
    assert [c["name"] for c in spec["initContainers"]] == ["own", "pairun-init"]
    assert [v["name"] for v in spec["volumes"]] == ["data", "pairun"]
    names = [v["name"] for v in spec["containers"][0]["env"]]
    assert (names[0], names.count("FC_POD_NAME")) == ("FC_POD_NAME", 1)


@pytest.mark.slow
def test_a_failed_container_is_kept(tmp_path: Path) -> None:
    """A task of the playbook holds a container that failed."""
    text = injected(SHELL.replace("COMMAND", "exit 5"), playbook={"runtime": HOLD})
    pod = yaml.safe_load(text)
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


DIES = """#!/bin/sh
echo "serving $1"
echo "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total" >&2
exit 1
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", range(4))
def test_a_server(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """PID 1 starts each server of the example, without a barrier, and says why it died."""
    for name in ("vllm", "uvicorn"):
        (tmp_path / name).write_text(DIES)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    made = injected((Path(__file__).parents[2] / "examples" / "inject-serving.yaml").read_text())
    assert "PAIRUN_GANG" not in made
    vllm, group, gateway = (d["spec"] for d in yaml.safe_load_all(made))
    parts = group["leaderWorkerTemplate"]
    templates = [
        vllm["template"],
        parts["leaderTemplate"],
        parts["workerTemplate"],
        gateway["template"],
    ]
    (tmp_path / "pai").mkdir()
    _, main = run_pod(templates[number], tmp_path / "pai")
    assert main is not None
    assert main.code == 1
    assert "serving" in main.said
    assert "ask for larger GPUs" in main.said


def test_the_group_that_the_scheduler_places() -> None:
    """A Pod refers to the PodGroup of its role; a removal takes the field away again."""
    group = {"schedulingGroup": {"podGroupName": "gang"}}
    made = injected(POD, pod_group={"train": "gang"})
    assert group.items() <= yaml.safe_load(made)["spec"].items()
    assert uninject(Source("manifest.yaml", "job", made), Problems()) == POD
    own = POD.replace("  containers:", "  schedulingGroup: {podGroupName: mine}\n  containers:")
    assert any("has its own schedulingGroup" in r for r in refusals(own, pod_group={"": "gang"}))
    assert any("--pod-group none" in r for r in refusals(POD, pod_group={"none": "gang"}))


def test_no_text_of_the_manifest_is_rendered() -> None:
    """The command reaches PID 1 as it is, and init not at all."""
    pod = yaml.safe_load(injected(POD.replace("exit 3", "echo $(POD) {{ 7*7 }}")))
    assert "7*7" not in str(pod["spec"]["initContainers"])
    (main,) = pod["spec"]["containers"]
    assert main["command"][2:] == ["sh", "-c", "echo $(POD) {{ 7*7 }}"]


def test_the_difference_is_small() -> None:
    """Fields of one line are one line: a reviewer reads about 20, and 30 more with a barrier."""
    job = """\
apiVersion: batch/v1
kind: Job
metadata:
  name: train
spec:
  completionMode: Indexed
  completions: 2
  parallelism: 2
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: main
        image: busybox
        command: [sh, -c, "exit 3"]
"""
    lines = [
        len(injected(job, barrier=b).splitlines()) - len(job.splitlines()) for b in (False, True)
    ]
    assert lines == [20, 66]
