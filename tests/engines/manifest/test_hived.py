"""HiveD's annotation, against what OpenPAI's REST server makes of the same job."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from pairun.engines.manifest.choices import ENGINES, Engine
from pairun.engines.manifest.hived import SPEC
from pairun.engines.manifest.objects import make_objects
from pairun.errors import PairunError, Problems
from pairun.kube.owners import Object
from tests.engines.manifest.test_podvalues import pods_in
from tests.engines.test_manifest import TEXT, job_of, options

SKUS = {
    "V100": {"gpu": 1, "cpu": 6, "memory": "56Gi"},
    "CPU": {"gpu": 0, "cpu": 2, "memory": "4Gi"},
}
PS = "PS_server: {skuNumber: 1}"
HALVES = """{taskRoles: {PS_server: {skuNumber: 1, skuType: a, affinityGroupName: g},
  worker: {skuType: b, affinityGroupName: g}}}"""


def hived(extras: str, virtual_cluster: str = "") -> str:
    """The job of two roles with something to say to HiveD."""
    return f"{TEXT}{virtual_cluster}extras: {{hivedScheduler: {extras}}}\n"


def made(text: str, engine: Engine, pod: dict[str, Any] | None = None) -> list[Object]:
    """The Pods, or templates, of each role once."""
    job = job_of(text)
    objects = make_objects(job, options(job, engine, pod))
    pods = [p for o in objects if "spec" in o for p in pods_in(o)]
    return list({p["metadata"]["labels"]["pairun/role"]: p for p in pods}.values())


@pytest.mark.parametrize("engine", [each for each in ENGINES if each != "job"])
def test_every_pod_says_its_cells(engine: Engine) -> None:
    """As OpenPAI's REST server writes it: priority, cells, and the gang as one affinity group.

    A Job has one role, so it cannot run this job of two.
    """
    text = hived(
        f"{{jobPriorityClass: prod, taskRoles: {{{PS}, worker: {{skuType: V100}}}}}}",
        "defaults: {virtualCluster: vision}\n",
    )
    server, worker = made(text, engine)
    group = {
        "name": "alice~train/default",
        "members": [
            {"podNumber": 1, "leafCellNumber": 1},
            {"podNumber": 3, "leafCellNumber": 2},
        ],
    }
    assert yaml.safe_load(worker["metadata"]["annotations"][SPEC]) == {
        "virtualCluster": "vision",
        "priority": 100,
        "pinnedCellId": None,
        "leafCellType": "V100",
        "leafCellNumber": 2,
        "affinityGroup": group,
    }
    assert worker["spec"]["schedulerName"] == "hivedscheduler-ds-vision"
    [app] = worker["spec"]["containers"]
    limits = app["resources"]["limits"]
    assert "nvidia.com/gpu" not in limits
    assert limits["hivedscheduler.microsoft.com/pod-scheduling-enable"] == "1"
    [devices] = [v for v in app["env"] if v["name"] == "NVIDIA_VISIBLE_DEVICES"]
    assert "pod-leaf-cell-isolation" in devices["valueFrom"]["fieldRef"]["fieldPath"]
    assert yaml.safe_load(server["metadata"]["annotations"][SPEC])["leafCellType"] is None


def test_the_clusters_sizes_of_cells() -> None:
    """The most of what GPUs, processors and memory need; without a type the smallest cell counts."""
    text = hived("{taskRoles: {PS_server: {skuType: CPU}, worker: {skuType: V100}}}")
    server, worker = made(text, "jobset", {"hived_skus": SKUS})
    cells = [
        yaml.safe_load(p["metadata"]["annotations"][SPEC])["leafCellNumber"]
        for p in (server, worker)
    ]
    assert cells == [1, 2]


def test_named_affinity_groups() -> None:
    """Roles of one name are one group; a role without one has none."""
    text = hived(
        f"{{taskRoles: {{{PS}, worker: {{affinityGroupName: w, gangReleaseEnable: true}}}}}}"
    )
    server, worker = (yaml.safe_load(p["metadata"]["annotations"][SPEC]) for p in made(text, "pod"))
    assert server["affinityGroup"] is None
    assert worker["affinityGroup"] == {
        "name": "alice~train/w",
        "members": [{"podNumber": 3, "leafCellNumber": 2}],
    }
    assert worker["gangReleaseEnable"] is True


@pytest.mark.parametrize(
    ("extras", "message"),
    [
        ("[]", "must be a mapping"),
        (f"{{jobPriorityClass: high, taskRoles: {{{PS}}}}}", "jobPriorityClass must be one of"),
        (f"{{taskRoles: {{{PS}, workr: {{}}}}}}", "there is no key 'workr'"),
        (f"{{taskRoles: {{{PS}, worker: {{skuTyp: a}}}}}}", "there is no key 'skuTyp'"),
        (f"{{taskRoles: {{{PS}, worker: {{skuType: a, pinnedCellId: b}}}}}}", "takes one of them"),
        ("{taskRoles: {PS_server: {}}}", "how many cells of HiveD the role 'PS_server' needs"),
        (
            HALVES,
            "have different cells",
        ),
    ],
)
def test_what_hived_would_refuse(extras: str, message: str) -> None:
    """It is an error here, with the job's line."""
    job = job_of(hived(extras))
    with pytest.raises(PairunError) as refused:
        make_objects(job, options(job, "jobset"))
    [problem] = refused.value.problems
    assert message in problem.message
    assert problem.place is not None


def test_a_cluster_without_hived_is_warned_of() -> None:
    """Nobody places such Pods there; a scheduler's name says that the cluster has it."""
    job = job_of(hived(f"{{taskRoles: {{{PS}}}}}"))
    for pod, count in ((None, 1), ({"spec": {"schedulerName": "hived"}}, 0)):
        problems = Problems()
        make_objects(job, options(job, "jobset", pod), problems)
        assert sum("HiveD's scheduler" in p.message for p in problems) == count
