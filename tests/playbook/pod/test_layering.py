"""The layers of a Pod's settings: who may set what, within which bounds, and who did."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from pairun.errors import Place, Problems, Source, render
from pairun.playbook.document.reading import node_of
from pairun.playbook.drafts import history
from pairun.playbook.pod.bounds import quantity
from pairun.playbook.pod.layering import COMMAND_LINE, pod_settings
from pairun.playbook.policy import Policy
from pairun.review.lint import lint
from pairun.secrets.vault import Vault

if TYPE_CHECKING:
    from tests.desk import Desk

STAR = "pod: {job_may: '*'}"
NOTHING = ""
SOME = "pod: {job_may: [queue, security, volumes.hostPath, volumes]}"
BOUNDS = """\
pod:
  job_may: "*"
  defaults:
    shm: 64Gi
    queue: default
    init_resources: {limits: {memory: 2Gi}}
  bounds:
    shm: {max: 16Gi}
    queue: {one_of: [default, team-*]}
    active_deadline: {min: 1m, max: 1d}
    resources.limits: {max: {cpu: 8, nvidia.com/gpu: 4}}
    security.run_as_user: {min: 1000}
    tolerations: {none_of: [control-plane]}
    node_selector: {one_of: [gpu]}
    volumes.hostPath: {one_of: [/data/*]}
"""
TAINTS = "pod: {job_may: '*', bounds: {tolerations: {one_of: [gpu]}}}"
EVERY_TAINT = "pod: {job_may: '*', bounds: {tolerations: {one_of: ['*'], none_of: []}}}"
HOST_PATH = "volumes: [{name: a, hostPath: {path: /data/x}}]"
ATTEMPTS = [
    ("a star allows what is plain", STAR, "queue: a", ""),
    ("a star leaves out what is closed", STAR, "host_network: true", "must list 'host_network' itself; it lists: *"),
    ("a star leaves out folders of the node", STAR, HOST_PATH, "must list 'volumes.hostPath' itself"),
    ("a policy without Pods allows nothing", NOTHING, "queue: a", "may set: none"),
    ("a name allows what is below it", SOME, "security: {run_as_user: 5}", ""),
    ("a name leaves out what is closed below it", SOME, "security: {privileged: true}", "itself"),
    ("a closed setting that is named", SOME, HOST_PATH, ""),
    ("what is not named", SOME, "shm: 1Gi", "may set: queue, security"),
    ("a role's setting", SOME, "roles: {worker: {shm: 1Gi}}", "may set: queue, security"),
    ("a role that is not there", STAR, "roles: {workr: {shm: 1Gi}}", "did you mean 'worker'?"),
    ("a setting of the whole job in a role", STAR, "roles: {worker: {queue: a}}", "no keyword"),
    ("an unknown setting", STAR, "priority: high", "did you mean 'priority_class'?"),
    ("a wrong kind", STAR, "shm: lots", "'shm' must be"),
    ("a duration without a unit", STAR, "active_deadline: 5", "did you mean '5s'?"),
    ("below the most", BOUNDS, "shm: 16Gi", ""),
    ("above the most", BOUNDS, "shm: 18000M", "must be at most 16Gi, not 18000M\n" ),
    ("above the most in another unit", BOUNDS, "shm: 1Ti", "must be at most 16Gi, not 1Ti"),
    ("one of a pattern", BOUNDS, "queue: team-vision", ""),
    ("none of them", BOUNDS, "queue: prod", "must be one of default, team-*, not 'prod'"),
    ("too short", BOUNDS, "active_deadline: 30s", "must be at least 1m, not 30s"),
    ("too long", BOUNDS, "active_deadline: 25h", "must be at most 1d, not 25h"),
    ("an entry above its most", BOUNDS, "resources: {limits: {cpu: 9}}", "at most 8 of cpu, not 9"),
    ("an entry without a bound", BOUNDS, "resources: {limits: {rdma/hca: 9}}", ""),
    ("root", BOUNDS, "security: {run_as_user: 0}", "must be at least 1000, not 0"),
    ("a list's element", BOUNDS, "tolerations: [{key: control-plane}]", "must not be"),
    ("every taint", BOUNDS, "tolerations: [{operator: Exists}]", "must have a 'key', not control-plane"),
    ("every taint, not in a list", TAINTS, "tolerations: [{operator: Exists}]", "one of gpu: without"),
    ("every taint is allowed", EVERY_TAINT, "tolerations: [{operator: Exists}]", ""),
    ("a mapping's key", BOUNDS, "node_selector: {zone: a}", "must be one of gpu, not 'zone'"),
    ("a bound for a role", BOUNDS, "roles: {worker: {shm: 17Gi}}", "must be at most 16Gi"),
    ("null is the default", BOUNDS, "queue: null", ""),
]  # fmt: skip


def pod_of(text: str) -> str:
    """``extras.pairun`` with settings of Pods."""
    return f"pod:\n  {text}"


@pytest.mark.parametrize(
    ("policy", "pod", "refusal"), [row[1:] for row in ATTEMPTS], ids=[row[0] for row in ATTEMPTS]
)
def test_what_a_job_may_set(desk: Desk, policy: str, pod: str, refusal: str) -> None:
    """A job sets what its cluster's policy allows; an error shows the job's line and the policy's."""
    root = desk.root({"playbooks/policy.yaml": f"job_may: {{}}\n{policy}\n"})
    review = desk.review(desk.job(pod_of(pod)), root)
    texts = [render(p) for p in review.problems.errors]
    if not refusal.strip():
        assert texts == []
    else:
        assert any(refusal.strip() in text for text in texts), texts


RESOURCES = [
    ("cpu: 9", "at most 8 of cpu, not 9"),
    ("gpu: 5", "at most 4 of nvidia.com/gpu, not 5"),
    ("memoryMB: 4097", "at most 4Gi of memory, not 4097Mi"),
    ("cpu: 8", ""),
]


@pytest.mark.parametrize(("line", "refusal"), RESOURCES)
def test_bounds_hold_for_what_stands_in_the_pod(desk: Desk, line: str, refusal: str) -> None:
    """``resourcePerInstance`` gives the limits, and a request without an entry is the limit."""
    limits = "{max: {cpu: 8, nvidia.com/gpu: 4, memory: 4Gi}}"
    bounds = f"{{resources.limits: {limits}, resources.requests: {limits}}}"
    text = f"job_may: {{}}\npod: {{job_may: '*', bounds: {bounds}}}\n"
    root = desk.root({"playbooks/policy.yaml": text})
    name = line.partition(":")[0]
    job = re.sub(rf"{name}: [0-9]+", line, desk.job())
    errors = desk.review(job, root).problems.errors
    if not refusal:
        assert not errors
        return
    assert [p.message for p in errors] == [
        f"'pod.resources.{part}' must be {refusal}" for part in ("limits", "requests")
    ]
    for problem in errors:
        assert problem.place is not None
        assert "resourcePerInstance" in problem.place.source.line(problem.place.line)


def test_a_setting_takes_the_place_of_what_is_bounded(desk: Desk) -> None:
    """A limit below the bound replaces a larger one of the job."""
    root = desk.root({"playbooks/policy.yaml": f"job_may: {{}}\n{BOUNDS}"})
    large = desk.job("pod: {resources: {limits: {cpu: 8}}}").replace("cpu: 1,", "cpu: 64,")
    assert not desk.problems(large, root)


def test_a_bound_of_shm_holds_for_shm_mb(desk: Desk) -> None:
    """The job file says the size in two places."""
    text = "job_may: {}\npod: {job_may: '*', bounds: {shm: {max: 1Gi}}}\n"
    root = desk.root({"playbooks/policy.yaml": text})
    options = "    extraContainerOptions: {shmMB: 2048}\n    commands"
    [problem] = desk.problems(desk.job().replace("    commands", options), root)
    assert "'pod.shm' must be at most 1Gi, not 2048Mi" in problem.message


@pytest.mark.parametrize(("volumes", "mounted"), [("data", "data"), ("data", "dta"), ("", "data")])
def test_a_review_finds_a_mount_without_a_volume(desk: Desk, volumes: str, mounted: str) -> None:
    """Before anything is made of it, with the job's line; another layer may have the volume."""
    listed = f"volumes: [{{name: {volumes}, emptyDir: {{}}}}], " if volumes else ""
    job = desk.job(f"pod: {{{listed}mounts: [{{name: {mounted}, mountPath: /d}}]}}")
    problems = desk.problems(job)
    if volumes == mounted:
        assert not problems
        return
    [problem] = problems
    assert (problem.id, problem.message) == ("PR783", f"there is no volume '{mounted}' to mount")
    assert problem.hint == ("did you mean 'data'?" if volumes else None)
    assert problem.place is not None
    assert "mounts:" in problem.place.source.line(problem.place.line)


def test_a_default_is_the_operators_own(desk: Desk) -> None:
    """The bounds hold for the job, and a cluster's default may be beyond them."""
    root = desk.root({"playbooks/policy.yaml": f"job_may: {{}}\n{BOUNDS}"})
    review = desk.review(desk.job(), root)
    assert not review.problems.errors
    pod = review.pods["worker"]
    assert pod.get("shm") == "64Gi"
    # the built-in policy's defaults stay below a cluster's
    assert pod.get("init_resources.limits") == {"cpu": 1, "memory": "2Gi"}
    assert pod.get("init_resources.requests") == {"cpu": "100m", "memory": "128Mi"}


def test_every_value_knows_who_set_it(desk: Desk) -> None:
    """From the role's own value down to the cluster's default; null takes a value away."""
    root = desk.root({"playbooks/policy.yaml": f"job_may: {{}}\n{BOUNDS}"})
    text = (
        "{shm: 8Gi, queue: null, labels: {a: '1'}, roles: {worker: {shm: 4Gi, labels: {b: '2'}}}}"
    )
    pod = desk.review(desk.job(f"pod: {text}"), root).pods["worker"]
    assert pod.get("queue") is None
    assert pod.get("labels") == {"a": "1", "b": "2"}
    chain = [(n.value, n.place.source.layer) for n in history(pod.values["shm"])]
    assert chain == [("4Gi", "job"), ("8Gi", "job"), ("64Gi", "cluster")]


def test_a_persons_options_keep_to_the_bounds(desk: Desk) -> None:
    """What a job may set binds the job; the bounds bind the command line, too."""
    root = desk.root({"playbooks/policy.yaml": f"job_may: {{}}\n{BOUNDS}"})
    policy: Policy = desk.layers(root).policy

    def problems_of(pod: dict[str, Any]) -> list[str]:
        problems = Problems()
        flags = node_of(pod, Place(Source("--flag", COMMAND_LINE, ""), 0, 0))
        pod_settings(policy, None, flags, "worker", [], problems)
        return [p.message for p in problems.errors]

    assert problems_of({"host_network": True}) == []
    assert problems_of({"queue": "prod"}) == [
        "'pod.queue' must be one of default, team-*, not 'prod'"
    ]


@pytest.mark.parametrize(
    ("text", "number"),
    [("2", 2), (2, 2), ("500m", 0.5), ("1k", 1000), ("1Ki", 1024), ("1.5Gi", 1.5 * 2**30),
     ("1e3", 1000), ("2E", 2e18), ("lots", None)],
)  # fmt: skip
def test_quantities(text: object, number: float | None) -> None:
    """The forms of https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/."""
    assert quantity(text) == number


def test_a_policy_that_names_what_is_not_there(desk: Desk) -> None:
    """A wrong name in a policy is a warning of lint, a wrong form an error."""
    text = "job_may: {}\npod: {job_may: [quue], bounds: {shn: {max: 1}}}\n"
    root = desk.root({"playbooks/policy.yaml": text})
    problems = lint([str(root / "playbooks" / "policy.yaml")], [str(root)], Vault()).problems
    assert sorted(p.message for p in problems) == [
        "there is no setting 'quue' of Pods",
        "there is no setting 'shn' of Pods",
    ]
