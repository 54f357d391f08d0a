"""Checks a backend until every task has an address, or the time is over."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

from pairun.module import Context, Failure, Gathering, TimedOut, Transient, format_duration

from .members import SHOWN, Backend, Look, Member, some_of

_RESERVE_S = 1.0
"""The part of the attempt's time that is reserved for the message about missing tasks."""

_REASONS_IN_LARGE_GANGS = 3
_LARGE_GANG = 100

_SHORTEST_S = 1.0
"""The shortest time between two checks by one task, and before the first one beside a leader."""

_PATIENCE_S = 20.0
"""Seconds for which the barrier tries to reach the job's leader before it asks the API server."""

_SELDOM_S, _SELDOM_PER_TASK_S = 90.0, 0.06
"""How often it asks the API server while the leader responds; large gangs in effect never do."""


class Wait:
    """Checks until no task is missing, or the time is over.

    Args:
        ctx: the world.
        backend: reads the addresses.
        interval: seconds between two checks; with ``looks_per_s``, the maximum.
        timeout: seconds for all checks together.
        say: takes lines for people.

    Attributes:
        interval: as above.
        looks_per_s: checks per second that one server gets from the gang; 0 for no limit.
    """

    def __init__(
        self, ctx: Context, backend: Backend, interval: float, timeout: float, say: Any
    ) -> None:
        self._ctx, self._backend, self._say = ctx, backend, say
        self.interval, self._limit = interval, timeout
        self.looks_per_s = 0.0
        if (left := ctx.remaining_s()) is not None:
            self._limit = max(0.0, min(timeout, left - _RESERVE_S))
        self._failure: Failure | None = None
        self._failures = 0
        self._look: Look | None = None
        self._last_line = ""
        self._gathering: Gathering | None = None
        self._met: Callable[[], Look] | None = None
        self._tasks = 0
        self._joins = False

    def meet(self, gathering: Gathering, tasks: int, met: Callable[[], Look]) -> None:
        """Wait until the tasks find each other; check often only if they do not.

        Args:
            gathering: the tasks that are looking for each other.
            tasks: number of these tasks.
            met: makes the result after all of them have authenticated.
        """
        self._gathering, self._tasks, self._met = gathering, tasks, met

    def result(self) -> Look:
        """The last check, in which no task is missing.

        Raises:
            TimedOut: tasks are missing at the end; the message names them and the reasons.
            Transient: the last check had no usable answer.
            Permanent: waiting longer would not help.
        """
        start, turn = self._ctx.now(), 0
        looked = float("-inf")
        while True:
            gathering = self._gathering
            if (look := self._together()) is not None:
                return look
            if self._gathering is not gathering:
                looked = float("-inf")  # the gathering has ended: check now
            now, is_early = self._ctx.now(), self._is_early()
            left = self._limit - (now - start)
            patience = self._patience(turn, is_early)
            wait = max(looked + self._pause(turn), start + patience) - now
            if left > 0 and wait > 0:
                self._rest(min(left, wait))
                continue
            look = self._once()
            if look is not None and (gathering := self._gathering) is not None:
                self._joins = look.running or gathering.leader_runs
            if look is not None and look.complete and (self._joins or not is_early):
                if self._gathering is not None:
                    self._gathering.close()
                return look
            looked = self._ctx.now()
            if self._limit <= looked - start:
                raise self._late()
            turn += not is_early

    def _is_early(self) -> bool:
        """Whether to ask now, because this task may join a gang that runs.

        In such a gang nobody registers any more. Its leader sees that in a first look, the others
        in the leader's Pod. In a gang that starts, an early look does not end the leader's wait:
        the others still need it.
        """
        if (gathering := self._gathering) is None:
            return False
        is_first = gathering.leads and self._look is None
        return is_first or gathering.leader_runs or self._joins

    def _patience(self, turn: int, is_early: bool) -> float:
        """Seconds after the start in which the barrier only waits for the gathering."""
        if self._gathering is None:
            return 0.0
        if is_early:
            # With a key, a leader that runs may still know all tasks.
            return 0.0 if self._gathering.leads else _SHORTEST_S
        if not self._gathering.connected:
            return _PATIENCE_S
        return (turn + 1) * max(_SELDOM_S, self._tasks * _SELDOM_PER_TASK_S)

    def _together(self) -> Look | None:
        """The addresses that the tasks sent each other, after a complete gathering."""
        gathering = self._gathering
        if gathering is None or not (gathering.complete or gathering.over):
            return None
        self._gathering = None
        if gathering.over:
            self._say(f"the tasks do not find each other: {gathering.over}")
        if gathering.peers is None or self._met is None:
            return None
        self._say(f"all {len(gathering.peers)} tasks have found each other")
        return self._met()

    def _rest(self, seconds: float) -> None:
        if self._gathering is None:
            self._ctx.sleep(seconds)
        else:
            self._gathering.wait(seconds)

    def _once(self) -> Look | None:
        try:
            self._look = self._backend.look()
        except (Transient, TimedOut) as e:
            self._failure, self._failures = e, self._failures + 1
            self._say_once(f"{e.message}; retrying")
            return None
        self._failure, self._failures = None, 0
        self._say_once(
            str(self._look) + (f", but {foreign}" if (foreign := self._look.foreign) else "")
        )
        return self._look

    def _say_once(self, line: str) -> None:
        if line != self._last_line:
            self._last_line = line
            self._say(line)

    def _pause(self, turn: int) -> float:
        """Seconds until the next check, different for each task of a gang."""
        if self._failure is not None:
            retry_after = self._failure.retry_after_s or 0.0
            backoff = float(2 ** min(self._failures - 1, 6))
            return max(retry_after, min(10.0, backoff)) * self._jitter(turn)
        if not self.looks_per_s or self._look is None:
            return self.interval
        fair = 0.0 if self._joins else len(self._look.members) / self.looks_per_s
        return min(self.interval, max(_SHORTEST_S, fair) * self._jitter(turn))

    def _jitter(self, turn: int) -> float:
        """A factor from 0.75 to 1.25, determined by the task and the turn."""
        who = f"{self._ctx.env.get('FC_POD_UID')}/{turn}"
        return 0.75 + zlib.crc32(who.encode()) / 2**33

    def _late(self) -> Failure:
        limit, look = format_duration(self._limit), self._look
        if self._failure is not None or look is None:
            last = self._failure.message if self._failure else "none came"
            return Transient(
                f"no usable answer after {limit}; the last: {last}",
                fault="platform",
                hint="check that the API server is up, and that this node reaches it",
            )
        hint = "check why those tasks do not start: resources, image, node"
        reasons: dict[Member, str] = {}
        count = SHOWN if len(look.members) <= _LARGE_GANG else _REASONS_IN_LARGE_GANGS
        try:
            reasons.update(self._backend.why(look.missing[:count]))
        except Failure as e:
            hint = f"cannot find out why they are missing: {e.message}"
            hint += f"; {e.hint}" if e.hint else ""
        if look.foreign:
            hint = (
                "this Pod's attempt is over, or not recorded yet: check the job's state, and that "
            )
            hint += "its controller runs"
        missing = f"; missing: {some_of(look.missing, reasons)}" if look.missing else ""
        foreign = f", but {look.foreign}" if look.foreign else ""
        return TimedOut(f"after {limit} {look}{foreign}{missing}", fault="platform", hint=hint)
