"""The Pods of a job find each other on a node, run tasks for each other and wait for each other."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Callable

import pytest

from tests.node.api import Object
from tests.node.conftest import JOB, Ended, Manifests, Node
from tests.node.test_frameworks import NAME as OPENPAI_JOB
from tests.node.test_frameworks import Jobs

WORKERS = 4
UID = "--set=spec.containers.app.securityContext.runAsUser=1000"
TASKS = ("chief-0", *(f"worker-{i}" for i in range(WORKERS)))
FOUND = "all {} instances have found each other"
ROLE_BINDING = "pairun-init"
"""Of the rights on Pods, in `deploy`."""

MEETS = """
set -e
test ! -e /var/run/secrets/kubernetes.io
touch "/data/came-$PAI_CURRENT_TASK_ROLE_NAME-$PAI_TASK_INDEX"
pairun barrier wait start --timeout 2m
echo "$(ls /data | grep -c came) came: $PAI_TASK_ROLE_INSTANCES"
echo "$PAI_HOST_IP_chief_0 $PAI_HOST_IP_worker_0 $PAI_HOST_IP_worker_3"
"""
CHIEF = f'{MEETS}\npairun barrier wait nobody --timeout 1s || echo "ended with $?"'
WORKER = f"{MEETS}\ntest $PAI_TASK_INDEX -gt 1 || pairun barrier wait pair --count 2 --timeout 2m"
BOTH = """
set -e
pairun barrier wait start --timeout 2m
echo "$PAI_HOST_IP_chief_0 $PAI_HOST_IP_worker_1"
"""
TO_THE_END = f"{BOTH}\npairun barrier wait end --timeout 2m"
STAYS_ONCE = f"""{BOTH}
if test $PAI_TASK_INDEX = 1 && mkdir /data/again 2>/dev/null; then exec sleep 1000; fi
pairun barrier wait end --timeout 2m
"""
ONCE = {
    phase: f"""\
phase: {phase}
patches:
  - {place}
    id: once_{phase}
    name: One instance does this for others
    cmd: {{script: echo "$FC_TASKROLE_NAME-$FC_TASK_INDEX" >> /data/{phase}}}
    run_on: {run_on}
""" for phase, place, run_on in (
        ("init", "after: barrier", "first_of_job"),
        ("runtime", "before: user_command", "first_of_role"),
    )
}  # fmt: skip

Make = Callable[..., list[Object]]


def job(image: str, **roles: tuple[int, str]) -> Object:
    """A job whose instances do not end each other: for each role their number and command."""
    return {
        "protocolVersion": 2, "name": JOB, "type": "job",
        "prerequisites": [{"type": "dockerimage", "name": "image", "uri": image}],
        "taskRoles": {
            name: {
                "instances": instances, "dockerImage": "image", "commands": [command],
                "completion": {"minFailedInstances": -1, "minSucceededInstances": -1},
                "resourcePerInstance": {"cpu": 0, "memoryMB": 96, "gpu": 0},
            } for name, (instances, command) in roles.items()
        },
    }  # fmt: skip


@pytest.fixture
def make(manifests: Manifests, deployed: None, debian: str) -> Make:
    """What `pairun manifest` makes of a job."""

    def make(engine: str, *options: str, **roles: tuple[int, str]) -> list[Object]:
        return manifests(engine, job(debian, **roles), *options)

    return make


def pods_of(objects: list[Object], *names: str) -> list[Object]:
    """Some Pods of a job."""
    return [o for o in objects if o["kind"] == "Pod" and o["metadata"]["name"] in names]


def addresses(ended: dict[str, Ended], *names: str) -> str:
    """The addresses of Pods as the API server has them."""
    return " ".join(ended[name].pod["status"]["podIP"] for name in names)


def met(node: Node, names: tuple[str, ...] = TASKS, prefix: str = JOB) -> dict[str, Ended]:
    """Wait for the end of all Pods of a job, which went well in both containers."""
    if framework := node.api.find(f"{node.frameworks}/{prefix}"):
        ended = node.tasks_ended(framework)
    else:
        ended = {name: node.ended(f"{prefix}-{name}") for name in names}
    for each in ended.values():
        assert (each.code("init"), each.code("app")) == (0, 0), each.story
    return ended


def completed(node: Node, name: str = JOB) -> None:
    """Wait until a Framework is over.

    On the node's network a port may be taken, and the controller tries again.
    """

    def look() -> bool:
        status = node.api.get(f"{node.frameworks}/{name}").get("status") or {}
        return bool(status.get("state") == "Completed")

    node.wait("the end of the Framework", look)


def barrier_says(node: Node, name: str, words: str) -> None:
    """Wait until the barrier of the Pod that has this name now says something."""

    def look() -> pathlib.Path | None:
        uid = node.pods()[name]["metadata"]["uid"]
        logs = node.logs.rglob(f"{uid}/barrier.log")
        return next((p for p in logs if words in p.read_text()), None)

    node.wait(f"'{words}' in the barrier.log of {name}", look)


def gone(node: Node, name: str) -> None:
    """Wait until a Pod that was deleted is no more."""
    node.wait(f"Pod {name} to be gone", lambda: name not in node.pods())


def said(ended: Ended) -> str:
    """What the command of a Pod wrote."""
    return ended.log("user-all/current")


def has_met(ended: dict[str, Ended]) -> None:
    """Who ran `MEETS` saw everybody, and has the right addresses."""
    everyone = ",".join(name.replace("-", ":") for name in TASKS)
    expected = f"5 came: {everyone}\n{addresses(ended, 'chief-0', 'worker-0', 'worker-3')}\n"
    for each in ended.values():
        assert said(each).startswith(expected), each.story


@pytest.mark.usefixtures("controller")
@pytest.mark.parametrize("engine", ["framework", "pod"])
def test_the_tasks_find_each_other(node: Node, make: Make, engine: str) -> None:
    """Five tasks of two roles gather without the API's lists; their commands wait for each other.

    A barrier can be for some of them, and one to which nobody comes ends with 124.
    """
    node.apply(*make(engine, chief=(1, CHIEF), worker=(WORKERS, WORKER)))
    if engine == "framework":
        completed(node)
    ended = met(node)
    has_met(ended)
    for each in ended.values():
        assert FOUND.format(5) in each.log("barrier.log"), each.story
    assert "ended with 124\n" in said(ended["chief-0"])
    assert "not all 5 members reached the barrier nobody in time" in said(ended["chief-0"])


def test_one_runs_a_task_for_others(node: Node, make: Make) -> None:
    """A task of the cluster runs once per job in init, and once per role before the command."""
    layer = {f"{phase}.yaml": text for phase, text in ONCE.items()}
    node.api.merge(f"{node.core}/configmaps/runtime-exit-spec-configuration", {"data": layer})
    # The leader stays: who asks after its end hears nothing, and runs the task itself.
    node.apply(*make("pod", chief=(1, TO_THE_END), worker=(2, TO_THE_END)))
    ended = met(node, TASKS[:3])
    assert (node.data / "init").read_text() == "chief-0\n"
    assert sorted((node.data / "runtime").read_text().splitlines()) == ["chief-0", "worker-0"]
    told = ended["worker-1"].log("init.log")
    assert "chief-0 runs it for the others" in told
    assert "worker-0 runs it for the others" in told  # the check of the image
    assert "worker-0 runs it for the others" in ended["worker-1"].log("runtime.log")


@pytest.mark.usefixtures("deployed")
def test_a_verdict_fails_all(node: Node, manifests: Manifests) -> None:
    """One instance of a role finds that the image does not exist, and all of them say so."""
    absent = job("127.0.0.1:5000/lab/absent:1", chief=(1, "true"), worker=(3, "true"))
    node.apply(*manifests("pod", absent, "--set=spec.hostNetwork=true"))
    ended = {name: node.ended(f"{JOB}-{name}") for name in TASKS[:4]}
    for name, each in ended.items():
        state = each.state("init")
        assert state["exitCode"] == 254, each.story
        assert "lab/absent:1" in state["message"]
        asked = name in ("chief-0", "worker-0")
        assert ("worker-0 runs it for the others" in each.log("init.log")) != asked


@pytest.mark.usefixtures("controller")
@pytest.mark.parametrize("network", ["--set=spec.hostNetwork=true", "--set=spec.hostNetwork=false"])
def test_without_rights_on_pods(node: Node, make: Make, network: str) -> None:
    """The barrier looks at the Framework, says why, and the commands still wait for each other.

    A Pod that is late finds all addresses in the Framework at once, and asks for no Pod.
    """
    node.revoke(ROLE_BINDING)
    node.apply(*make("framework", network, chief=(1, MEETS), worker=(WORKERS, MEETS)))
    completed(node)
    ended = met(node)
    has_met(ended)
    told = [each.log("barrier.log") for each in ended.values()]
    assert any("runtime-account may not get pods in the namespace" in each for each in told), told
    assert all("5 of 5 instances have addresses" in each for each in told), told


@pytest.mark.usefixtures("controller")
def test_without_a_key(node: Node, debian: str, runtime_image: str) -> None:
    """Pods of OpenPAI's own take nothing from each other but the hint to look again."""
    command = 'pairun barrier wait start || echo "ended with $?"'
    node.grant("pods", "", "pods", "get", "list", "watch")  # as deploy/openpai does
    Jobs(node, debian, runtime_image).submit(command, command)
    completed(node, OPENPAI_JOB)
    ended = met(node, prefix=OPENPAI_JOB)
    for each in ended.values():
        assert "5 of 5 instances have addresses" in each.log("barrier.log")
        assert "found each other" not in each.log("barrier.log")
        assert "[PR779]" in said(each)
        assert "ended with 1\n" in said(each)
    assert "all 5 members are present" in ended["chief-0"].log("init.log")


def test_a_pod_that_comes_again(node: Node, make: Make) -> None:
    """While the others run, a new Pod in place of one that was deleted passes; PID 1 knows them.

    It took over what init knew, though it is another user.
    """
    objects = make("pod", UID, chief=(1, TO_THE_END), worker=(2, STAYS_ONCE))
    node.apply(*objects)
    name = f"{JOB}-worker-1"
    node.wait_for_file("again")
    before = node.deleted(name)
    gone(node, name)
    node.apply(*pods_of(objects, name))
    ended = met(node, TASKS[:3])
    late = ended["worker-1"]
    assert late.pod["metadata"]["uid"] != before.pod["metadata"]["uid"]
    assert FOUND.format(3) in late.log("barrier.log"), late.story
    assert "instances have addresses" not in late.log("barrier.log"), late.story
    assert said(late).endswith(addresses(ended, "chief-0", "worker-1") + "\n")


def test_a_leader_that_is_replaced_while_the_others_run(node: Node, make: Make) -> None:
    """It asks the API server when it starts: nobody registers with it any more."""
    chief = "if mkdir /data/again 2>/dev/null; then exec sleep 1000; fi; touch /data/back"
    worker = "until test -e /data/back; do sleep 0.2; done"
    objects = make("pod", chief=(1, chief), worker=(2, worker))
    leader = f"{JOB}-chief-0"
    node.apply(*objects)
    node.wait_for_file("again")
    node.deleted(leader)
    gone(node, leader)
    node.apply(*pods_of(objects, leader))
    late = met(node, TASKS[:3])["chief-0"]
    assert "3 of 3 instances have addresses" in late.log("barrier.log"), late.story
    # It would wait for the others for 90 s.
    records = map(json.loads, late.log("journal.jsonl").splitlines())
    (end,) = (r for r in records if r["type"] == "task_end" and r["task"] == "barrier")
    assert end["seconds"] < 30, late.story


def test_a_leader_that_comes_again(node: Node, make: Make) -> None:
    """A leader that is replaced while the job gathers is found again, at its new address."""
    objects = make("pod", chief=(1, BOTH), worker=(2, BOTH))
    leader, last = f"{JOB}-chief-0", f"{JOB}-worker-1"
    late = pods_of(objects, last)
    node.apply(*(o for o in objects if o not in late))
    barrier_says(node, f"{JOB}-worker-0", "missing: worker 1")
    node.api.delete(f"{node.core}/pods/{leader}", {"gracePeriodSeconds": 0})
    gone(node, leader)
    node.apply(*pods_of(objects, leader))
    barrier_says(node, leader, "missing: worker 1")
    node.apply(*late)
    ended = met(node, TASKS[:3])
    expected = addresses(ended, "chief-0", "worker-1") + "\n"
    for each in ended.values():
        assert FOUND.format(3) in each.log("barrier.log"), each.story
        assert expected in said(each), each.story
