"""How long instances have been stuck: they wait for something that a person must change."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from pairun.engines.kubernetes.podstates import PodState


class Stuck(NamedTuple):
    """The instance that is stuck longest.

    Attributes:
        instance: the instance.
        seconds: for how long.
    """

    instance: PodState
    seconds: float


class StuckClock:
    """Measures it over the states of a job that is followed.

    The reason may change meanwhile, as from ``ErrImagePull`` to ``ImagePullBackOff``.
    """

    def __init__(self) -> None:
        self._since: dict[str, float] = {}

    def longest(self, instances: Iterable[PodState], now: float) -> Stuck | None:
        """The instance that is stuck longest; None where none is.

        Args:
            instances: of the job, as they are now.
            now: on the monotonic clock, in seconds.
        """
        stuck = {each.uid: each for each in instances if each.phase == "stuck"}
        self._since = {uid: self._since.get(uid, now) for uid in stuck}
        if not stuck:
            return None
        uid = min(stuck, key=lambda each: self._since[each])
        return Stuck(stuck[uid], now - self._since[uid])
