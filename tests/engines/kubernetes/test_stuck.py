"""How long instances have been stuck."""

from __future__ import annotations

from pairun.cli.following import StuckClock
from pairun.engines.kubernetes.podstates import PodState, read_pod
from tests.engines.kubernetes.samples import PLACED, pod, runs, waits


def stuck(index: int, reason: str) -> PodState:
    """An instance whose image does not come."""
    inits = [waits("init", reason)]
    return read_pod(
        pod(index=index, phase="Pending", conditions=PLACED, initContainerStatuses=inits)
    )


def test_the_longest_counts_whatever_its_reason_becomes() -> None:
    """An instance that runs again starts anew, and another one may be stuck longer then."""
    clock = StuckClock()
    running = read_pod(pod(phase="Running", conditions=PLACED, containerStatuses=[runs("app")]))
    assert clock.longest([running], 0.0) is None
    first = clock.longest([stuck(0, "ErrImagePull")], 10.0)
    assert first is not None
    assert first.seconds == 0.0
    both = clock.longest([stuck(0, "ImagePullBackOff"), stuck(1, "ErrImagePull")], 30.0)
    assert both is not None
    assert (both.instance.label, both.seconds) == ("worker-0", 20.0)
    other = clock.longest([running, stuck(1, "ErrImagePull")], 40.0)
    assert other is not None
    assert (other.instance.label, other.seconds) == ("worker-1", 10.0)
    again = clock.longest([stuck(0, "ErrImagePull")], 50.0)
    assert again is not None
    assert again.seconds == 0.0
