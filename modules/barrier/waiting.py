"""Checks a backend until every instance has an address, or the time is over."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping

from pairun.module import Context, Failure, Gathering, TimedOut, Transient, format_duration

from .objects import SHOWN, Backend, Look, Member, Object

_RESERVE_S = 1.0
"""The part of the attempt's time that is reserved for the message about missing instances."""

_REASONS_IN_LARGE_GANGS = 3
_LARGE_GANG = 100

_SHORTEST_S = 1.0
"""The shortest time between two checks by an instance."""

_ANSWER_S = 0.3
"""Seconds in which a leader that runs can answer an instance that joins, before that asks the API server."""

_PATIENCE_S = 20.0
"""Seconds for which the barrier tries to reach the job's leader before it asks the API server."""

_ALONE_PER_S = 50.0
"""Checks per second by a whole gang that does not reach its leader; small gangs check more seldom."""

_SELDOM_S, _SELDOM_PER_TASK_S = 90.0, 0.06
"""How often it asks the API server while the leader responds; large gangs in effect never do."""


class Wait:
    """Checks until no instance is missing, or the time is over.

    Args:
        ctx: the world.
        backend: reads the addresses.
        interval: the longest time between two checks, in seconds.
        timeout: seconds for all checks together.
        say: takes lines for people.

    Attributes:
        looks_per_s: checks per second that one server gets from the gang; 0 for the interval alone.
    """

    def __init__(
        self,
        ctx: Context,
        backend: Backend,
        interval: float,
        timeout: float,
        say: Callable[[str], None],
    ) -> None:
        self._ctx, self._backend, self._say = ctx, backend, say
        self._interval, self._limit = interval, timeout
        self.looks_per_s = backend.looks_per_s
        if (left := ctx.remaining_s()) is not None:
            self._limit = max(0.0, min(timeout, left - _RESERVE_S))
        self._failure: Failure | None = None
        self._failures = 0
        self._look: Look | None = None
        self._last_line = ""
        self._gathering: Gathering | None = None
        self._roles: Mapping[str, Object] = {}
        self._joins = False

    def meet(self, roles: Mapping[str, Object]) -> None:
        """Let the instances of these roles find each other; check often only if they do not."""
        self._roles = roles
        counts = {name: role["count"] for name, role in roles.items()}
        self._gathering = self._ctx.gather(counts, self._say) if counts else None

    def result(self) -> Look:
        """The last check, in which no instance is missing.

        Raises:
            TimedOut: instances are missing at the end; the message names them and the reasons.
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
                rest = gathering.wait if (gathering := self._gathering) else self._ctx.sleep
                rest(min(left, wait))
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
        """Whether to ask now, because this instance may join a gang that runs.

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
            # With a key, a leader that runs may still know all instances.
            return 0.0 if self._gathering.leads else _ANSWER_S
        tasks = self._tasks()
        if not self._gathering.connected:
            return max(_PATIENCE_S, tasks / _ALONE_PER_S)
        return (turn + 1) * max(_SELDOM_S, tasks * _SELDOM_PER_TASK_S)

    def _tasks(self) -> int:
        return sum(role["count"] for role in self._roles.values())

    def _together(self) -> Look | None:
        """The addresses that the instances sent each other, after a complete gathering."""
        gathering = self._gathering
        if gathering is None or not (gathering.complete or gathering.over):
            return None
        self._gathering = None
        if gathering.over:
            self._say(f"the instances do not find each other: {gathering.over}")
        if gathering.peers is None:
            return None
        self._say(f"all {len(gathering.peers)} instances have found each other")
        return self._backend.met(self._roles, gathering)

    def _once(self) -> Look | None:
        """Ask the backend; logs the answer if it differs from the last one."""
        look = None
        try:
            look = self._look = self._backend.look()
        except (Transient, TimedOut) as e:
            self._failure, self._failures = e, self._failures + 1
            line = f"{e.message}; retrying"
        else:
            self._failure, self._failures = None, 0
            line = str(look)
        if line != self._last_line:
            self._last_line = line
            self._say(line)
        return look

    def _pause(self, turn: int) -> float:
        """Seconds until the next check, different for each instance of a gang."""
        who = f"{self._ctx.env.get('FC_POD_UID')}/{turn}"
        jitter = 0.75 + zlib.crc32(who.encode()) / 2**33  # up to 1.25
        least = 0.0
        if self._gathering is not None and not self._joins:
            # The leader may still come: its absence must not load the API server.
            least = self._tasks() / _ALONE_PER_S * (jitter + 0.25)
        if self._failure is not None:
            backoff = min(10.0, float(2 ** min(self._failures - 1, 6)))
            return max(max(self._failure.retry_after_s or 0.0, backoff) * jitter, least)
        if not self.looks_per_s or self._look is None:
            return max(self._interval, least)
        fair = 0.0 if self._joins else len(self._look.members) / self.looks_per_s
        return max(min(self._interval, max(_SHORTEST_S, fair) * jitter), least)

    def _late(self) -> Failure:
        limit, look = format_duration(self._limit), self._look
        if self._failure is not None or look is None:
            last = self._failure.message if self._failure else "none came"
            return Transient(
                f"no usable answer after {limit}; the last: {last}",
                fault="platform",
                hint="check that the API server is up, and that this node reaches it",
            )
        hint = "check why those instances do not start: resources, image, node"
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
                "its controller runs"
            )
        names = [f"{m} ({reasons[m]})" if m in reasons else str(m) for m in look.missing]
        more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        missing = f"; missing: {', '.join(names[:SHOWN])}{more}" if names else ""
        return TimedOut(f"after {limit} {look}{missing}", fault="platform", hint=hint)
