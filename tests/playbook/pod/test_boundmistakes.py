"""Bounds of a policy that bound nothing: errors where the policy is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pairun.review.lint import lint
from pairun.secrets.vault import Vault

if TYPE_CHECKING:
    from tests.desk import Desk

VOLUMES = "pod: {volumes: [{name: a, emptyDir: {}}], shm: 1Gi, resources: {limits: {cpu: 1}}}"
MISTAKES = [
    ("volumes: {max: 3}", "'volumes' has no order, so it has no 'max'", "one_of or none_of"),
    ("labels: {min: {a: 1}}", "'labels' has no order", "one_of or none_of"),
    ("host_network: {max: 1}", "'host_network' has no order", "one_of or none_of"),
    ("shm: {max: lots}", "'max' of 'shm' must be a quantity, not 'lots'", "for example 16Gi"),
    ("shm: {max: {cpu: 1}}", "'max' of 'shm' must be a quantity, not a mapping", "16Gi"),
    ("active_deadline: {max: soon}", "'active_deadline' must be a duration, not 'soon'", "12h"),
    ("security.run_as_user: {min: me}", "must be a number, not 'me'", "for example 1000"),
    ("resources: {max: {cpu: 1}}", "'resources' has no bounds of its own", "resources.limits"),
    ("resources.limits: {max: 4}", "must be a mapping, not 4", "for example max: {cpu: 2}"),
    ("resources.limits: {max: {cpu: two}}", "'max' of 'cpu' in 'resources.limits'", "for example"),
    ("resources.limits: {max: {cpu: [2]}}", "must be a quantity, not a list", "for example 16Gi"),
    ("pod_group: {max: {system: 2}}", "'system' of 'pod_group' has no order", "min_member"),
    ("shm: {min: 2Gi, max: 1Gi}", "'min' '2Gi' is above 'max' '1Gi'", "swap"),
    (
        "active_deadline: {min: 2h, max: 30m}",
        "no value of 'active_deadline' is allowed",
        "swap",
    ),
    (
        "resources.limits: {min: {cpu: 2}, max: {cpu: 500m}}",
        "no value of 'resources.limits.cpu'",
        "",
    ),
    ("security.run_as_user: {min: 9, max: 8}", "no value of 'security.run_as_user'", "swap"),
    ("queue: {one_of: [[a]]}", "'one_of' of 'queue' must list texts, not a list", "team-a"),
    ("queue: {none_of: [{a: b}]}", "must be text, not a mapping", ""),
    ("queue: {max: [1]}", "must be text or a number or a mapping, not a list", ""),
]


@pytest.mark.parametrize(("bound", "message", "hint"), MISTAKES, ids=[m[0] for m in MISTAKES])
def test_a_bound_that_bounds_nothing(desk: Desk, bound: str, message: str, hint: str) -> None:
    """``lint`` of the policy and the review of a job report it with its place, and what to do."""
    text = f"job_may: {{}}\npod:\n  job_may: '*'\n  bounds:\n    {bound}\n"
    root = desk.root({"playbooks/policy.yaml": text})
    policy = str(root / "playbooks" / "policy.yaml")
    linted = list(lint([policy], [str(root)], Vault()).problems)
    for problems in (linted, desk.problems(desk.job(VOLUMES), root)):
        mine = [p for p in problems if message in p.message]
        assert mine, problems
        assert "PR406" in {p.id for p in mine}
        assert hint in (mine[0].hint or "")
        assert all(p.place is not None and p.place.line == 5 for p in problems)


def test_a_job_beside_such_a_policy_is_linted(desk: Desk) -> None:
    """A lint of both reports the policy's mistake, and does not fail on the job."""
    text = "job_may: {}\npod: {job_may: '*', bounds: {volumes: {max: 3}}}\n"
    root = desk.root({"playbooks/policy.yaml": text})
    job = desk.tmp / "job.yaml"
    job.write_text(desk.job(VOLUMES))
    problems = lint(
        [str(root / "playbooks" / "policy.yaml"), str(job)], [str(root)], Vault()
    ).problems
    assert {p.id for p in problems if p.severity == "error"} == {"PR406"}


def test_bounds_that_bound(desk: Desk) -> None:
    """Numbers, quantities, durations, and the numbers of a mapping."""
    bounds = (
        "{pod_group: {max: {min_member: 8}}, shm: {max: 64}, ttl_after_finished: {min: 1h}, "
        "hived_skus: {one_of: [V100]}, security.run_as_user: {min: 1000, max: 60000}}"
    )
    root = desk.root(
        {"playbooks/policy.yaml": f"job_may: {{}}\npod: {{job_may: '*', bounds: {bounds}}}\n"}
    )
    assert not desk.problems(desk.job(), root)
