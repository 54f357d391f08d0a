"""The Pods of a gang, told by the labels that other controllers give them."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from pairun.kube.gang import (
    GROUP_KEY,
    POD_NAME,
    RESTART_ATTEMPT,
    GangPods,
    GangRole,
    IndexPart,
    gang_text,
    read_gang,
)

JOB_INDEX, COMPLETION = "jobset.sigs.k8s.io/job-index", "batch.kubernetes.io/job-completion-index"
WORKERS = GangRole(
    name="worker", instances=6, labels={"role": "w"},
    index=(IndexPart(key=JOB_INDEX, weight=3), IndexPart(key=COMPLETION)),
)  # fmt: skip
LEADER = GangRole(name="leader", instances=1, labels={"role": "l"}, index=())
GANG = GangPods(same={"job": "x"}, roles=(LEADER, WORKERS))


def pod(role: str, name: str = "p", job: str = "x", **annotations: str) -> dict[str, Any]:
    """A Pod of the gang."""
    return {
        "metadata": {"name": name, "labels": {"job": job, "role": role}, "annotations": annotations}
    }


def test_a_number_of_two_labels() -> None:
    """The number of a JobSet's Pod follows from its Job's number and its own."""
    assert GANG.place_of(pod("w", **{JOB_INDEX: "1", COMPLETION: "2"})) == ("worker", 5)
    assert GANG.place_of(pod("l")) == ("leader", 0)
    assert GANG.selector_of("worker", 5) == f"job=x,role=w,{JOB_INDEX}=1,{COMPLETION}=2"


@pytest.mark.parametrize(
    "other",
    [
        pod("w"),
        pod("w", **{JOB_INDEX: "2", COMPLETION: "0"}),
        pod("w", **{JOB_INDEX: "x", COMPLETION: "0"}),
        pod("other"),
        pod("l", job="y"),
        {},
    ],
)
def test_others_are_not_of_the_gang(other: dict[str, Any]) -> None:
    """A Pod without a number, with one too high, of another role or of another job does not count."""
    assert GANG.place_of(other) is None


def test_the_key_of_a_gang() -> None:
    """A JobSet's restart is the attempt of one gang; other labels make it another gang."""
    first, again = (GangPods(same={"job": "x", RESTART_ATTEMPT: n}, roles=()) for n in ("0", "1"))
    assert (first.key, again.key) == (("job=x", 0), ("job=x", 1))
    assert GANG.key == ("job=x", 0)
    other = pod("l", **{JOB_INDEX: "0"})
    other["metadata"]["labels"][RESTART_ATTEMPT] = "0"
    assert attrs.evolve(again, roles=(LEADER,)).place_of(other) is None


def test_workers_of_an_earlier_leader() -> None:
    """A group of a LeaderWorkerSet with a number keeps its key: older workers are of another start."""
    index = "leaderworkerset.sigs.k8s.io/worker-index"
    pods = [
        {"metadata": {"labels": {GROUP_KEY: "a", index: number}, "creationTimestamp": created}}
        for number, created in (("0", "01:00"), ("1", "00:59"), ("1", "01:00"), ("2", "01:01"))
    ]
    group = attrs.evolve(GANG, same={GROUP_KEY: "a"})
    assert group.of_last_start(pods) == [pods[0], *pods[2:]]
    assert group.of_last_start(pods[1:]) == pods[1:]
    assert GANG.of_last_start(pods) == pods


def test_a_number_at_the_end_of_a_name() -> None:
    """A StatefulSet's Pod has its number in its name; so others' names follow from this one's."""
    role = GangRole(name="w", instances=3, labels={}, index=(IndexPart(key=POD_NAME),), offset=2)
    gang = GangPods(same={"app": "x"}, roles=(role,))
    member = {"metadata": {"name": "web-2", "labels": {"app": "x"}}}
    assert gang.place_of(member) == ("w", 0)
    assert gang.pod_name_of("w", 2, "w", "web-2") == "web-4"
    assert gang.selector_of("w", 0) is None


def test_the_name_of_a_pod_of_another_role() -> None:
    """It follows from this Pod's name where both roles' Pods bear them: WORKLOAD-ROLE-NUMBER."""
    index = (IndexPart(key="metadata.name"),)
    ps, worker = (
        GangRole(name=name, instances=2, labels={"volcano.sh/task-spec": label}, index=index)
        for name, label in (("ps", "ps"), ("worker", "work-er"))
    )
    gang = GangPods(same={"volcano.sh/job-name": "train"}, roles=(ps, worker))
    assert gang.pod_name_of("ps", 0, "worker", "train-work-er-1") == "train-ps-0"
    assert gang.pod_name_of("worker", 1, "ps", "train-ps-0") == "train-work-er-1"
    assert gang.pod_name_of("ps", 0, "worker", "other-1") is None


def test_the_variable_tells_who_this_is() -> None:
    """The init container finds its gang, its role and its number in variables."""
    same, index = {"job": "A", "gone": "B"}, {JOB_INDEX: "C", COMPLETION: "D"}
    env = {
        "PAIRUN_GANG": gang_text(same, GANG.roles, "worker", index),
        "A": "x",
        "C": "1",
        "D": "0",
    }
    assert read_gang(env) == (GANG, "worker", 3)
    assert read_gang({}) is None
    with pytest.raises(ValueError, match="no number below 6"):
        read_gang({**env, "C": ""})
    with pytest.raises(ValueError, match="none of the labels"):
        read_gang({**env, "A": ""})
    with pytest.raises(ValueError, match="does not describe a gang"):
        read_gang({"PAIRUN_GANG": "[]"})
