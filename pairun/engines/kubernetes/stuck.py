"""How long instances are stuck: they wait for a change that only a person can make."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from pairun.engines.kubernetes.podstates import PodState


class Stuck(NamedTuple):
    """The instance that is stuck for the longest time.

    Attributes:
        instance: the instance.
        seconds: how long it is stuck.
    """

    instance: PodState
    seconds: float


class StuckClock:
    """Measures how long instances of a followed job are stuck.

    The reason may change in between, such as from ``ErrImagePull`` to ``ImagePullBackOff``.
    """

    def __init__(self) -> None:
        self._since: dict[str, float] = {}

    def longest(self, instances: Iterable[PodState], now: float) -> Stuck | None:
        """The instance that is stuck for the longest time; None if none is.

        Args:
            instances: the job's instances now.
            now: the monotonic clock, in seconds.
        """
        stuck = {each.uid: each for each in instances if each.phase == "stuck"}
        self._since = {uid: self._since.get(uid, now) for uid in stuck}
        if not stuck:
            return None
        uid = min(stuck, key=lambda each: self._since[each])
        return Stuck(stuck[uid], now - self._since[uid])
