"""How long instances have been stuck."""

from __future__ import annotations

import attrs

from pairun.cli.following import StuckClock
from pairun.engines.kubernetes.jobstate import JobState
from pairun.kube.podstates import PodState, read_pod
from tests.engines.kubernetes.samples import PLACED, pod, runs, waits


def stuck(index: int, reason: str) -> PodState:
    """An instance whose image does not come."""
    inits = [waits("init", reason)]
    return read_pod(
        pod(index=index, phase="Pending", conditions=PLACED, initContainerStatuses=inits)
    )


def job(*instances: PodState, because: str = "", refused: bool = False) -> JobState:
    """A job that has not ended."""
    return JobState(name="mnist", namespace="default", engine="job", state="waiting", because=because,
                    total=2, instances=instances, refused=refused)  # fmt: skip


def test_the_longest_counts_whatever_its_reason_becomes() -> None:
    """An instance that runs again starts anew, and another one may be stuck longer then."""
    clock = StuckClock()
    running = read_pod(pod(phase="Running", conditions=PLACED, containerStatuses=[runs("app")]))
    pulls, waits_to_pull = stuck(0, "ErrImagePull"), stuck(0, "ImagePullBackOff")
    other = stuck(1, "ErrImagePull")
    assert clock.longest(job(running), 0.0) is None
    assert clock.longest(job(pulls), 10.0) == ("worker-0", "ErrImagePull", 0.0)
    assert clock.longest(job(waits_to_pull, other), 30.0) == ("worker-0", "ImagePullBackOff", 20.0)
    assert clock.longest(job(running, other), 40.0) == ("worker-1", "ErrImagePull", 10.0)
    assert clock.longest(job(pulls), 50.0) == ("worker-0", "ErrImagePull", 0.0)


def test_a_job_is_stuck_while_its_pods_are_refused() -> None:
    """Its controller tries for ever, and the Job gets no condition."""
    clock = StuckClock()
    for now in (10.0, 30.0):
        longest = clock.longest(job(because="exceeded quota", refused=True), now)
    assert longest == ("the job", "exceeded quota", 20.0)
    assert clock.longest(job(), 40.0) is None


def test_an_image_that_is_tried_again_stays_one_reason() -> None:
    """The kubelet alternates between two words, of which one says why."""
    why = "ErrImagePull: registry.example/team/image:1: not found"
    first = attrs.evolve(stuck(0, "ErrImagePull"), reason=why)
    assert first.seen_as(stuck(0, "ImagePullBackOff")).reason == why
