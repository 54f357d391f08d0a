"""OpenPAI's own Framework on a node: two roles, five tasks, from the object to the last word of each."""

from __future__ import annotations

import hashlib
import pathlib
from collections.abc import Iterator

import attrs
import pytest
import yaml

from pairun.errors import Source
from pairun.job.jobfile import read_job
from pairun.job.jsyaml import JS
from pairun.kube.statuses import task_statuses
from pairun.playbook.document.reading import read_text
from tests.node.api import Object
from tests.node.conftest import PORTS, Node, give_folders, pod_specs
from tests.node.framework_controller import COMPRESS_FROM, FrameworkController
from tests.restserver import framework_of

NAME = "5eed5eed"
SECRET = "sesame-opens"
WORKERS = 4
CHIEF = r"""
exec perl -MIO::Socket::INET -e '
  $| = 1;
  my $server = IO::Socket::INET->new(Listen => 9, LocalPort => $ENV{PAI_PORT_LIST_chief_0_rpc}) or die;
  for (1 .. 4) { my $peer = $server->accept; print scalar <$peer>; print $peer "welcome\n"; }'
"""
WORKER = """
until { exec 3<>"/dev/tcp/$PAI_HOST_IP_chief_0/$PAI_PORT_LIST_chief_0_rpc"; } 2>/dev/null; do sleep 0.1; done
echo "$PAI_TASK_INDEX $PAI_CONTAINER_HOST_IP $PAI_CONTAINER_HOST_web_PORT_LIST $PAI_TASK_ROLE_INSTANCES" >&3
read -r answer <&3
echo "$answer, <% $secrets.word %>: $(printf %s '<% $secrets.word %>' | wc -c) letters"
"""
STOPPED = """
trap 'echo saved > "/data/$PAI_CURRENT_TASK_ROLE_NAME-$PAI_TASK_INDEX"; exit 7' TERM
touch "/data/ready-$PAI_CURRENT_TASK_ROLE_NAME-$PAI_TASK_INDEX"
while :; do sleep 0.1; done
"""
FAILS = """
test "$PAI_TASK_INDEX" = 2 && { echo "out of luck" >&2; exit 3; }
exec sleep 1000
"""
FAILS_ONCE = """
echo "attempt $FC_FRAMEWORK_ATTEMPT_ID"
test "$FC_FRAMEWORK_ATTEMPT_ID" = 1
"""
EXIT_SPEC = [{"containerExitCode": 221, "patterns": [{"userLogRegex": "out of luck"}]}]
AT_THE_END = {
    "before": "user_command", "id": "watched", "name": "What is done at the end is registered",
    "cmd": {"argv": ["true"]},
    "on_exit": [{"id": "bye", "name": "After a stop", "event": "signal",
                 "cmd": {"script": "touch /data/bye-$PAI_CURRENT_TASK_ROLE_NAME-$PAI_TASK_INDEX"}}],
}  # fmt: skip


@attrs.frozen
class Jobs:
    """Submits jobs as OpenPAI's REST server does.

    Attributes:
        node: where.
        image: of the users' containers.
        runtime_image: of the init containers.
    """

    node: Node
    image: str
    runtime_image: str

    def submit(self, chief: str, worker: str, workers: int = WORKERS, retries: int = 0) -> None:
        """Submit a job of two roles."""
        made = self.job(chief, worker, workers, retries)
        text = yaml.safe_dump(made, sort_keys=False)
        job, problems = read_job(read_text(Source("job", "job", text), JS), user="alice")
        assert job is not None, list(problems)
        framework = framework_of(job, NAME, PORTS)
        framework["metadata"]["namespace"] = self.node.namespace
        for spec in pod_specs([framework]):
            spec["initContainers"][0]["image"] = self.runtime_image
            give_folders(spec, self.node)
        self.node.apply(
            {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": f"{NAME}-configcred"},
             "stringData": {"secrets.yaml": yaml.safe_dump(made["secrets"])}},
            {"apiVersion": "v1", "kind": "ConfigMap",
             "metadata": {"name": "runtime-exit-spec-configuration"},
             "data": {"runtime-exit-spec.yaml": yaml.safe_dump(EXIT_SPEC)}},
            framework,
        )  # fmt: skip

    def job(self, chief: str, worker: str, workers: int, retries: int) -> Object:
        """The job."""

        def role(command: str, instances: int, **ports: int) -> Object:
            # The limit counts for the Pod: the leader's init needs up to 70 MiB in all its processes.
            resources = {"cpu": 0, "memoryMB": 96, "gpu": 0, "ports": ports}
            return {
                "instances": instances, "dockerImage": "image", "commands": [command],
                "resourcePerInstance": resources, "completion": {"minSucceededInstances": -1},
            }  # fmt: skip

        return {
            "protocolVersion": 2, "name": "gang", "type": "job", "jobRetryCount": retries,
            "prerequisites": [{"type": "dockerimage", "name": "image", "uri": self.image}],
            "secrets": {"word": SECRET},
            "taskRoles": {"chief": role(chief, 1, rpc=1), "worker": role(worker, workers, web=2)},
            "extras": {"pairun": {"runtime": [AT_THE_END]}},
        }  # fmt: skip

    def end(self) -> Object:
        """The status once the Framework is over."""

        def look() -> Object | None:
            status = self.node.api.get(f"{self.node.frameworks}/{NAME}").get("status") or {}
            return status if status.get("state") == "Completed" else None

        return self.node.wait("the end of the Framework", look)

    def logs(self, role: str, pod: Object) -> pathlib.Path:
        """Where a log manager looks for the logs of a Pod."""
        uid: str = pod["podUID"]
        return self.node.logs / "alice" / NAME / role / uid


@pytest.fixture
def jobs(node: Node, debian: str, runtime_image: str) -> Jobs:
    """Submits jobs in this test's namespace."""
    return Jobs(node, debian, runtime_image)


def names() -> Iterator[tuple[str, int]]:
    """Role and index of all tasks."""
    yield "chief", 0
    yield from (("worker", i) for i in range(WORKERS))


def pods_of(status: Object) -> dict[tuple[str, int], Object]:
    """What the status has of every task's Pod: the controller deletes the Pods at their end."""
    return {
        (role["name"], task["index"]): task["attemptStatus"]
        for role in task_statuses({"status": status})
        for task in role["taskStatuses"]
    }


def port_of(pod: Object, label: str, number: int) -> int:
    """A port by OpenPAI's rule, which its portal computes too."""
    text = f"[{pod['podUID']}][{label}][{number}]"
    digest = hashlib.md5(text.encode()).hexdigest()[:36]
    return sum(int(digest[i : i + 12], 16) for i in (0, 12, 24)) % (PORTS[1] - PORTS[0]) + PORTS[0]


@pytest.fixture(params=[COMPRESS_FROM, 1], ids=["plain", "compressed"])
def either_form(request: pytest.FixtureRequest, node: Node) -> Iterator[None]:
    """A controller that stores statuses in one form or the other."""
    with FrameworkController(node.api, node.namespace, compress_from=request.param):
        yield


@pytest.mark.usefixtures("either_form")
def test_gang(node: Node, jobs: Jobs) -> None:
    """Five tasks find each other by the addresses and ports that they got, and their logs say so."""
    jobs.submit(CHIEF, WORKER)
    status = jobs.end()
    assert status["attemptStatus"]["completionStatus"]["code"] == 0, node.story()
    pods = pods_of(status)
    everyone = ",".join(f"{role}:{i}" for role, i in names())
    expected = [
        f"{i} {pod['podHostIP']} {port_of(pod, 'web', 0)},{port_of(pod, 'web', 1)} {everyone}"
        for (role, i), pod in pods.items()
        if role == "worker"
    ]
    chief = jobs.logs("chief", pods["chief", 0])
    assert sorted((chief / "user-all" / "current").read_text().splitlines()) == expected
    for (role, _), pod in pods.items():
        logs = jobs.logs(role, pod)
        assert "init phase: success" in (logs / "init.log").read_text()
        assert "5 of 5 instances have addresses" in (logs / "barrier.log").read_text()
        assert "USER COMMAND END" in (logs / "runtime.log").read_text()
        if role == "worker":
            words = (logs / "user-all" / "current").read_text()
            assert f"welcome, ******: {len(SECRET)} letters\n" in words
        assert SECRET not in (logs / "init.log").read_text()


@pytest.mark.usefixtures("controller")
def test_failure(node: Node, jobs: Jobs) -> None:
    """One task that fails ends the job; the controller reads its code and its last words."""
    jobs.submit("exec sleep 1000", FAILS)
    status = jobs.end()
    done = status["attemptStatus"]["completionStatus"]
    assert done["code"] == 221, node.story()
    _, app = pods_of(status)["worker", 2]["completionStatus"]["pod"]["containers"]
    assert (app["name"], app["code"]) == ("app", 221)
    assert app["message"].startswith("[PAI_RUNTIME_ERROR_START]\n")
    assert "originUserExitCode: 3\n" in app["message"]
    assert "out of luck" in app["message"]


@pytest.mark.usefixtures("controller")
def test_stop(node: Node, jobs: Jobs) -> None:
    """A job that is stopped saves its work in every task, and runs every exit handler."""
    jobs.submit(STOPPED, STOPPED)
    for role, index in names():
        node.wait_for_file(f"ready-{role}-{index}")
    node.running(*(f"{NAME}-{role}-{index}" for role, index in names()))
    node.api.merge(f"{node.frameworks}/{NAME}", {"spec": {"executionType": "Stop"}})
    pods = pods_of(jobs.end())
    for role, index in names():
        pod = pods[role, index]
        assert pod["completionStatus"]["code"] == -220, node.story()
        assert (node.data / f"{role}-{index}").read_text() == "saved\n"
        assert (node.data / f"bye-{role}-{index}").exists()
        logs = jobs.logs(role, pod)
        runtime = (logs / "runtime.log").read_text()
        assert "received SIGTERM" in runtime
        assert "the command ended with 7" in runtime


@pytest.mark.usefixtures("controller")
def test_second_attempt(node: Node, jobs: Jobs) -> None:
    """A job that is tried again finds the Pods of its new attempt, and not those of the old one."""
    jobs.submit("true", FAILS_ONCE, workers=1, retries=1)
    status = jobs.end()
    assert status["attemptStatus"]["id"] == 1, node.story()
    assert status["attemptStatus"]["completionStatus"]["code"] == 0, node.story()
    logs = [p.read_text() for p in node.logs.rglob("user-stdout/current")]
    assert sorted(text for text in logs if text) == ["attempt 0\n", "attempt 1\n"]


@pytest.mark.usefixtures("controller")
def test_no_rights(node: Node, jobs: Jobs) -> None:
    """Init that may not read the Framework ends at once, and says which right is missing."""
    node.revoke("frameworks")
    jobs.submit("true", "true", workers=1)
    status = jobs.end()
    done = status["attemptStatus"]["completionStatus"]
    assert done["code"] == 252, node.story()
    ends = [pod["completionStatus"] for pod in pods_of(status).values()]
    init = next(end["pod"]["containers"][0] for end in ends if end["code"] == 252)
    assert init["name"] == "init"
    assert "frameworks" in init["message"]
    assert "get" in init["message"]
