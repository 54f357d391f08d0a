"""Which objects are a job's, for logins that may read only some kinds."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pairun.engines.kubernetes.jobobjects import find
from pairun.engines.kubernetes.submitting import remove
from pairun.engines.kubernetes.watching import follow
from pairun.errors import PairunError
from tests.engines.kubernetes.samples import PODS, Serve, ended, ids, pod
from tests.fakeapi import Answer, status

VERBS = {"DELETE": "delete", "PATCH": "patch", "POST": "create"}
GROUPS = {
    "frameworks": "frameworkcontroller.microsoft.com/v1",
    "jobsets": "jobset.x-k8s.io/v1alpha2",
    "jobs": "batch/v1",
}
EVERYTHING = ("get frameworks", "get jobsets", "get jobs", "get configmaps", "list pods")


class Limited:
    """A namespace that permits some verbs; refuses the others as the API server does."""

    def __init__(self, *rights: str) -> None:
        self.rights = {*rights}
        self.objects: dict[str, dict[str, Any]] = {}

    def add(self, plural: str, name: str, **obj: Any) -> dict[str, Any]:
        """Add an object of the job `mnist`."""
        group = f"apis/{GROUPS[plural]}" if plural in GROUPS else "api/v1"
        meta = {"name": name, "uid": f"u-{name}", "labels": {"pairun/job": "mnist"}}
        obj["metadata"] = {**meta, **obj.get("metadata", {})}
        self.objects[f"/{group}/namespaces/space/{plural}/{name}"] = obj
        return obj

    def add_pod(self, index: int, owner: str = "", **state: Any) -> dict[str, Any]:
        """Add a Pod; a controller creates it if it has an owner."""
        made = pod(index=index, **state)
        if owner:
            kind, name = owner.split("/")
            reference = {
                "apiVersion": "v1",
                "kind": kind,
                "name": name,
                "uid": "u",
                "controller": True,
            }
            made["metadata"] |= {"namespace": "space", "ownerReferences": [reference]}
        return self.add("pods", made["metadata"]["name"], **made)

    def add_config_map(self, engine: str = "") -> None:
        """Add the ConfigMap of the job; 0.3 did not write the engine."""
        role = {"name": "worker", "taskNumber": 1}
        text = json.dumps({"spec": {"taskRoles": [role]}})
        marks = {"annotations": {"pairun/engine": engine}} if engine else {}
        self.add("configmaps", "mnist-job", metadata=marks, data={"framework.json": text})

    def __call__(self, method: str, path: str, query: dict[str, str], _: Any) -> Answer:
        """Answer."""
        resource, _, name = path.partition("/space/")[2].partition("/")
        verb = VERBS.get(method, "get" if name else "watch" if "watch" in query else "list")
        if f"{verb} {resource}" not in self.rights:
            words = f'User "u" cannot {verb} resource "{resource}" in API group ""'
            return status(403, "Forbidden", words)
        if verb == "watch":
            return 200, b""
        if verb == "list":
            found = [o for p, o in self.objects.items() if p.startswith(f"{path}/")]
            return 200, {"items": found, "metadata": {"resourceVersion": "1"}}
        if path not in self.objects:
            return status(404, "NotFound", "not found")
        return 200, self.objects.pop(path) if verb == "delete" else self.objects[path]


FAILED = {"phase": "Failed", "containerStatuses": [ended("app", 5)]}


def test_a_job_that_retries_has_not_ended_with_its_first_pod(serve: Serve) -> None:
    space = Limited("get jobs", "list pods", "watch pods")
    job = space.add("jobs", "mnist", spec={"completions": 1}, status={"active": 1})
    space.add_pod(0, "Job/mnist", **FAILED)
    states = []
    for state in follow(serve(space)[0], "mnist"):
        states.append(state.state)
        job["status"] = {"conditions": [{"type": "Complete", "status": "True"}]}
    assert states == ["running", "succeeded"]


@pytest.mark.parametrize(
    ("owner", "plural"),
    [("Job/mnist", "jobs"), ("Job/mnist-worker-0", "jobsets"), ("ConfigMap/mnist-attempt", "frameworks")],
)  # fmt: skip
def test_pods_of_a_controller_that_cannot_be_read_are_not_plain(
    serve: Serve, owner: str, plural: str
) -> None:
    """Neither followed nor deleted: the error names the right, and every object remains."""
    space = Limited("list pods", "watch pods", "get configmaps", "get secrets",
                    "delete pods", "delete configmaps", "delete secrets")  # fmt: skip
    space.add_pod(0, owner, **FAILED)
    space.add_config_map()
    space.add("secrets", "mnist-rendezvous")
    cluster, fake = serve(space)
    for command in (lambda: list(follow(cluster, "mnist")), lambda: remove(cluster, "mnist")):
        with pytest.raises(PairunError) as e:
            command()
        assert ids(e) == ["PR788"]
        [problem] = e.value.problems
        assert f"get {plural}" in problem.message
        group = GROUPS[plural].partition("/")[0]
        rule = f'{{apiGroups: ["{group}"], resources: ["{plural}"], verbs: ["get"]}}'
        assert rule in str(problem.hint)
    assert not [each for each in fake.asked if each.startswith("DELETE")]


@pytest.mark.parametrize("engine", ["framework", "jobset", "job", "pod"])
def test_rights_on_the_own_kind_are_enough(serve: Serve, engine: str) -> None:
    """By name, without the right to list the kind, and whatever is refused of the others."""
    if engine == "pod":
        space = Limited("list pods", "get configmaps")
        space.add_pod(0)
        space.add_config_map("pod")
    else:
        space = Limited(f"get {engine}s")
        space.add(f"{engine}s", "mnist")
    assert find(serve(space)[0], "mnist").kind.engine == engine


@pytest.mark.parametrize(
    ("config_map", "rights", "id_", "words"),
    [
        ("pod", ("list pods", "get configmaps"), "", ""),
        # its workload is gone for certain
        ("job", ("list pods", "get configmaps", "get jobs"), "PR789", "there is no job"),
        # its workload may exist, without a Pod so far
        ("jobset", ("list pods", "get configmaps", "get jobs"), "PR788", "get jobsets"),
        (
            "old",
            ("list pods", "get configmaps", "get jobs"),
            "PR789",
            "not get frameworks, jobsets",
        ),
        ("old", EVERYTHING, "", ""),
        ("", ("list pods", "get configmaps", "get jobs"), "PR789", "not get frameworks, jobsets"),
        ("", EVERYTHING, "PR789", "there is no job"),
        ("pod", ("list pods",), "PR789", "not get frameworks, jobsets, jobs, configmaps"),
        ("pod", EVERYTHING[:4], "PR788", "list pods"),
    ],
)
def test_a_job_without_a_workload_and_pods(
    serve: Serve, config_map: str, rights: tuple[str, ...], id_: str, words: str
) -> None:
    """Its ConfigMap names the engine; what cannot be known is an error that names the right."""
    space = Limited(*rights)
    if config_map:
        space.add_config_map("" if config_map == "old" else config_map)
    cluster, _ = serve(space)
    if not id_:
        assert find(cluster, "mnist").kind.engine == "pod"
        return
    with pytest.raises(PairunError) as e:
        find(cluster, "mnist")
    assert ids(e) == [id_]
    assert words in str(e.value)


def test_plain_pods_need_their_completion_policy(serve: Serve) -> None:
    """Without it, which instances complete the job would be a guess."""
    space = Limited("list pods")
    space.add_pod(0)
    with pytest.raises(PairunError, match="get configmaps"):
        find(serve(space)[0], "mnist")


def test_a_workload_of_somebody_else_is_no_job(serve: Serve) -> None:
    space = Limited(*EVERYTHING)
    space.add("jobs", "mnist", metadata={"labels": {}})
    with pytest.raises(PairunError, match="there is no job"):
        find(serve(space)[0], "mnist")


def test_a_secret_stays_if_an_unreadable_kind_may_need_it(serve: Serve) -> None:
    """A workload that is only queued has no Pod yet."""
    space = Limited("list pods", "get configmaps", "get jobs", "get secrets", "delete secrets")
    space.add("secrets", "mnist-rendezvous")
    cluster, fake = serve(space)
    with pytest.raises(PairunError, match="not get frameworks, jobsets"):
        remove(cluster, "mnist")
    assert not [each for each in fake.asked if each.startswith("DELETE")]


def test_pods_of_a_workload_with_another_name_stay(serve: Serve) -> None:
    """A controller that `delete` does not find would create them again."""
    space = Limited(*EVERYTHING, "get secrets", "delete pods")
    space.add_pod(0, "Job/renamed")
    cluster, fake = serve(space)
    with pytest.raises(PairunError, match="Job renamed"):
        remove(cluster, "mnist")
    assert not [each for each in fake.asked if each.startswith("DELETE")]
    assert f"GET {PODS}" in fake.asked
