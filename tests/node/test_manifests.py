"""What `pairun manifest` writes, applied to a node: plain Pods, a Job, a Framework."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest
import yaml

from tests.node.api import Object
from tests.node.conftest import Manifests, Node, Run

SECRET = "sesame-opens"

Make = Callable[..., None]

pytestmark = pytest.mark.usefixtures("deployed")

SERVER = r"""
exec perl -MIO::Socket::INET -e '
  $| = 1;
  my $server = IO::Socket::INET->new(Listen => 9, LocalPort => $ENV{PAI_PORT_LIST_chief_0_rpc}) or die;
  for (1 .. 2) { my $peer = $server->accept; print scalar <$peer>; print $peer "welcome\n"; }'
"""
CLIENT = """
test ! -e /var/run/secrets/kubernetes.io
until { exec 3<>"/dev/tcp/$PAI_HOST_IP_chief_0/$PAI_PORT_LIST_chief_0_rpc"; } 2>/dev/null; do sleep 0.1; done
echo "$PAI_TASK_INDEX $PAI_CONTAINER_HOST_IP $PAI_TASK_ROLE_INSTANCES" >&3
read -r answer <&3
echo "$answer, $(printf %s '<% $secrets.word %>' | wc -c) letters"
"""
STOPPED = """
trap 'echo saved > /data/checkpoint; exit 7' TERM
touch /data/ready
while :; do sleep 0.1; done
"""
FAILS = "echo trouble >&2; exit 3"
AT_THE_END = {
    "before": "user_command", "id": "watched", "name": "What is done at the end is registered",
    "cmd": {"argv": ["true"]},
    "on_exit": [{"id": "bye", "name": "After a stop", "event": "signal",
                 "file": {"path": "/data/bye", "content": "bye"}}],
}  # fmt: skip


def job(image: str, **roles: tuple[int, str]) -> Object:
    """A job: for each role the instances and their command."""
    return {
        "protocolVersion": 2, "name": "gang", "type": "job",
        "prerequisites": [{"type": "dockerimage", "name": "image", "uri": image}],
        "secrets": {"word": SECRET},
        "taskRoles": {
            name: {
                "instances": instances, "dockerImage": "image", "commands": [command],
                "completion": {"minSucceededInstances": -1},
                "resourcePerInstance": {"cpu": 0, "memoryMB": 96, "gpu": 0, "ports": {"rpc": 1}},
            } for name, (instances, command) in roles.items()
        },
        "extras": {"pairun": {"runtime": [AT_THE_END]}},
    }  # fmt: skip


@pytest.fixture
def make(node: Node, manifests: Manifests, debian: str) -> Make:
    """Applies what `pairun manifest` makes of a job."""

    def make(engine: str, **roles: tuple[int, str]) -> None:
        node.apply(*manifests(engine, job(debian, **roles)))

    return make


@pytest.fixture
def claim(node: Node) -> Iterator[str]:
    """The name of a PersistentVolumeClaim whose volume is the test's folder."""
    volume = f"kept-{node.namespace}"
    size = {"storage": "1Mi"}
    both = {"storageClassName": "", "accessModes": ["ReadWriteMany"]}
    node.apply(
        {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": volume},
         "spec": {**both, "capacity": size, "hostPath": {"path": str(node.data)}}},
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "kept"},
         "spec": {**both, "resources": {"requests": size}, "volumeName": volume}},
    )  # fmt: skip
    yield "kept"
    node.kubectl("delete", "persistentvolume", volume, "--wait=false")


def test_pods(node: Node, make: Make) -> None:
    """Plain Pods of two roles find each other, and use what `secrets` has."""
    make("pod", chief=(1, SERVER), worker=(2, CLIENT))
    ended = {n: node.ended(f"gang-{n}") for n in ("chief-0", "worker-0", "worker-1")}
    for each in ended.values():
        assert (each.code("init"), each.code("app")) == (0, 0), each.story
        assert "all 3 instances have found each other" in each.log("barrier.log")
        assert "init phase: success" in each.log("init.log")
        assert "USER COMMAND END" in each.log("runtime.log")
        assert SECRET not in each.log("init.log")
    everyone = "chief:0,worker:0,worker:1"
    expected = [f"{i} {ended[f'worker-{i}'].pod['status']['podIP']} {everyone}" for i in (0, 1)]
    assert sorted(ended["chief-0"].log("user-all/current").splitlines()) == expected
    assert f"welcome, {len(SECRET)} letters\n" in ended["worker-1"].said["app"]


def test_failing_pod(node: Node, make: Make) -> None:
    """A Pod ends with its command's code, and its status tells why."""
    make("pod", worker=(1, FAILS))
    ended = node.ended("gang-worker-0")
    state = ended.state("app")
    assert state["exitCode"] == 3, ended.story
    assert state["message"].startswith("[PAI_RUNTIME_ERROR_START]\n")
    assert "originUserExitCode: 3\n" in state["message"]
    assert "trouble" in state["message"]
    assert ended.log("user-stderr/current") == "trouble\n"


def test_deleted_pod(node: Node, make: Make) -> None:
    """A Pod that is deleted saves its work and runs its exit handlers."""
    make("pod", worker=(1, STOPPED))
    node.wait_for_file("ready")
    ended = node.deleted("gang-worker-0")
    assert ended.code() == 7, ended.story
    assert (node.data / "checkpoint").read_text() == "saved\n"
    assert (node.data / "bye").exists()
    assert "received SIGTERM from outside" in ended.log("runtime.log")
    assert "originUserExitCode: 7\n" in ended.state("app")["message"]


def test_a_job_that_is_stopped_is_no_success(node: Node, make: Make) -> None:
    """Its command saves its work and ends with 0; the container ends with 143, and the Job goes on."""
    make("job", worker=(1, STOPPED.replace("exit 7", "exit 0")))
    node.wait_for_file("ready")
    (name,) = node.pods()
    ended = node.deleted(name)
    assert ended.code() == 143, ended.story
    assert (node.data / "checkpoint").read_text() == "saved\n"
    assert (node.data / "bye").exists()
    assert "the exit code is 143" in ended.log("runtime.log")
    status = node.api.get(f"/apis/batch/v1/namespaces/{node.namespace}/jobs/gang")["status"]
    assert not status.get("succeeded"), status


def test_a_storage(node: Node, manifests: Manifests, debian: str, claim: str) -> None:
    """What a job writes into its storage is in the claim's volume, and the check has seen it."""
    asks = job(debian, worker=(1, f"echo kept > /mnt/{claim}/result"))
    asks["extras"]["storages"] = [{"name": claim}]
    node.apply(*manifests("pod", asks))
    ended = node.ended("gang-worker-0")
    assert ended.code() == 0, ended.story
    assert "ok       mount_storage" in ended.log("runtime.log")
    assert (node.data / "result").read_text() == "kept\n"


@pytest.mark.parametrize(("command", "code"), [("echo done", 0), (FAILS, 3)])
def test_job(node: Node, make: Make, command: str, code: int) -> None:
    """A Job of one instance is complete or failed as its command was."""
    make("job", worker=(1, command))
    path = f"/apis/batch/v1/namespaces/{node.namespace}/jobs/gang"

    def look() -> str | None:
        conditions = node.api.get(path)["status"].get("conditions", [])
        return next((c["type"] for c in conditions if c["status"] == "True"), None)

    assert node.wait("the end of the Job", look) == ("Failed" if code else "Complete")
    ended = node.ended(next(iter(node.pods())))
    assert (ended.code("init"), ended.code("app")) == (0, code), ended.story
    assert "1 of 1 instances have addresses" in ended.log("barrier.log")
    said = ended.log("user-all/current")
    assert said == ("trouble\n" if code else "done\n")
    assert ("message" in ended.state("app")) == bool(code)


@pytest.mark.usefixtures("controller")
def test_framework(node: Node, make: Make) -> None:
    """A Framework by `manifest` goes from its first to its last Pod without OpenPAI."""
    make("framework", chief=(1, SERVER), worker=(2, CLIENT))

    def look() -> Object | None:
        status = node.api.get(f"{node.frameworks}/gang").get("status") or {}
        return status if status.get("state") == "Completed" else None

    status = node.wait("the end of the Framework", look)
    assert status["attemptStatus"]["completionStatus"]["code"] == 0, node.story()
    (chief,) = status["attemptStatus"]["taskRoleStatuses"][0]["taskStatuses"]
    logs = next(node.logs.rglob(chief["attemptStatus"]["podUID"]))
    assert "all 3 instances have found each other" in (logs / "barrier.log").read_text()
    assert len((logs / "user-all/current").read_text().splitlines()) == 2


def test_commands(node: Node, pairun: Run, runtime_image: str, debian: str) -> None:
    """`submit` ends as the job does; `status` and `logs` tell of it, and `delete` leaves nothing."""
    text = yaml.safe_dump(job(debian, worker=(1, FAILS)), sort_keys=False)
    argv = ("submit", "-", "--engine", "pod", "--name", "gang", "--image", runtime_image, "--wait")
    assert pairun(*argv, stdin=text, code=3) == "gang\n"
    told = json.loads(pairun("status", "gang", "--json"))
    (instance,) = told["instances"]
    assert (told["state"], told["exit_code"], instance["exit_code"]) == ("failed", 3, 3)
    said = pairun("logs", "gang")
    assert any(line.endswith("trouble") for line in said.splitlines()), said
    assert "journal/1" not in said
    (past,) = json.loads(pairun("report", "gang", "--json"))["instances"]
    assert [(p["phase"], p["outcome"]) for p in past["phases"]] == [
        ("init", "success"),
        ("runtime", "failure"),
    ]
    assert past["phases"][1]["command"]["exit_code"] == 3
    assert "<title>gang: failed</title>" in pairun("report", "--html", "-", "gang")
    pairun("delete", "gang", "--wait")
    assert node.pods() == {}
    found = node.api.get(f"{node.core}/secrets")["items"]
    assert not [s for s in found if s["metadata"]["name"].startswith("gang")]


WHO = r"""
echo "$(id -u) $(grep -E 'NoNewPrivs|CapEff|Seccomp:' /proc/self/status | tr -s '[:space:]' ' ')"
head -c 1 /usr/local/pai/runtime.d/secrets.json
printf %s '<% $secrets.word %>' | wc -c
"""


def test_restricted_pods(node: Node, pairun: Run, runtime_image: str, debian: str) -> None:
    """Both phases run without root, capabilities and new privileges, and share the volume."""
    text = yaml.safe_dump(job(debian, chief=(1, SERVER), worker=(2, WHO + CLIENT)), sort_keys=False)
    argv = ("submit", "-", "--engine", "pod", "--name", "gang", "--image", runtime_image,
            "--set", "pod_security=restricted", "--wait")  # fmt: skip
    pairun(*argv, stdin=text)
    said = pairun("logs", "gang", "--role", "worker")
    assert "1000 CapEff: 0000000000000000 NoNewPrivs: 1 Seccomp: 2" in said
    assert f"welcome, {len(SECRET)} letters" in said
    assert "init phase: success" in pairun("logs", "gang", "--role", "worker", "--init")
    pairun("delete", "gang", "--wait")


@pytest.mark.usefixtures("controller")
def test_commands_of_a_framework(node: Node, pairun: Run, runtime_image: str, debian: str) -> None:
    """Its controller has deleted the Pod: exit code, reason and the place of the log are told."""
    text = yaml.safe_dump(job(debian, worker=(1, FAILS)), sort_keys=False)
    argv = ("submit", "-", "--engine", "framework", "--name", "gang", "--image", runtime_image,
            "--log-host-path", str(node.logs), "--wait")  # fmt: skip
    assert pairun(*argv, stdin=text, code=3) == "gang\n"
    assert node.wait("the Pod to go", lambda: node.pods() == {})
    text = pairun("status", "gang")
    assert "is failed: worker-0: the command ended with 3: trouble\n" in text
    assert "0 of 1 instances have a Pod; 1 ended and their Pods are deleted" in text
    (instance,) = json.loads(pairun("status", "gang", "--json"))["instances"]
    assert (instance["phase"], instance["exit_code"]) == ("failed", 3)
    assert pairun("logs", "gang", code=1) == ""
    assert next(node.logs.rglob(instance["uid"])).is_dir()
    pairun("delete", "gang", "--wait")
