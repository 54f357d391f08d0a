"""`gather`: one member waits for all others and gets their addresses."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Mapping
from typing import Protocol

from pairun.module import Peer
from pairun.net.boundedcall import ForkedProcess, answering
from pairun.rendezvous.joining import Joiner
from pairun.rendezvous.leading import fan_of
from pairun.rendezvous.locating import Leader
from pairun.rendezvous.loop import PeerLoop
from pairun.rendezvous.refusals import LeaderRefusal, NotInTime, PortTaken
from pairun.rendezvous.roster import Address, Gang, JobKey, Roster
from pairun.rendezvous.wire import BadPeer

_TURN_S = 60.0
_SEEK_S = 120.0
_ANSWER_S = 10.0


class Locate(Protocol):
    """Finds the leader."""

    def __call__(self, timeout_s: float) -> Leader | None:
        """Wait for the leader's address; None after the timeout. Exceptions end the gathering."""


def gather(
    own: Peer,
    members_by_role: Mapping[str, int],
    job: JobKey,
    *,
    key: bytes | None,
    locate: Locate,
    deadline_s: float,
    log: Callable[[str], None],
    port: int = 0,
    on_turn: Callable[[bool], None] = lambda _: None,
    on_leader: Callable[[Leader], None] = lambda _: None,
    leave_fd: int | None = None,
) -> Roster | None:
    """Join the job's leader and wait for all members; rank 0 joins its own server.

    Args:
        own: this member.
        members_by_role: the number of members of each role, in the job's order; the first member of
            the first role is the leader.
        job: the attempt to gather.
        key: the job's key, or None if it has none.
        locate: finds the leader; called in a child process.
        deadline_s: time at which it gives up, on the monotonic clock.
        log: takes lines for people.
        port: the port for other members in a large gang; if it is in use, any free one.
        on_turn: called after every event; its argument is whether the leader or a parent accepted
            us.
        on_leader: called with the leader each time it is found.
        leave_fd: when a byte arrives, this member leaves, and stays counted; at its end, it goes.

    Returns:
        The roster; None if this member left. Without a key: None, once the leader reports all
        members. That is no proof; read the cluster's objects then.

    Raises:
        NotInTime: members are missing (PR775).
        LeaderRefusal: the leader belongs to another job, or to a newer attempt of this one (PR776).
    """
    gang = Gang.of(members_by_role)
    loop = PeerLoop(key, log)
    is_alone = False

    def found(leader: Leader | None) -> None:
        if leader is not None:
            on_leader(leader)
        joiner.located(leader and leader.address, time.monotonic())

    def leave() -> None:
        nonlocal is_alone
        assert leave_fd is not None
        is_alone = True
        if os.read(leave_fd, 1):
            joiner.leave()

    search = _Search(locate, deadline_s, loop, found)
    try:
        at = None
        if key is not None and gang.total > fan_of(gang.total):
            at = _listen(loop, own.pod_ip, port)
        joiner = Joiner(
            gang, gang.row(own), job, loop, search.begin, keyed=key is not None, at=at, log=log
        )
        loop.machine = joiner
        if leave_fd is not None:
            loop.watch(leave_fd, leave)
        search.begin()
        while not joiner.is_finished(now := time.monotonic()) and not is_alone:
            if now >= deadline_s and joiner.rows is None:
                raise _not_in_time(gang, joiner)
            wait_s = _TURN_S if joiner.rows is not None else deadline_s - now
            loop.turn(min(_TURN_S, wait_s))
            on_turn(joiner.is_connected)
    finally:
        loop.close_all()
        search.close()
    if joiner.refused:
        raise LeaderRefusal(joiner.refused)
    try:
        return None if joiner.rows is None else Roster.of(gang, joiner.rows)
    except BadPeer as e:
        raise LeaderRefusal(str(e)) from None


def _listen(loop: PeerLoop, own_ip: str, port: int) -> Address | None:
    """Listen for child members; None if no port is free: then this member has no children."""
    for number in (port, 0):
        with contextlib.suppress(PortTaken):
            return own_ip, loop.listen((own_ip, "::" if ":" in own_ip else "0.0.0.0"), number)[1]
    return None


def _not_in_time(gang: Gang, joiner: Joiner) -> NotInTime:
    total, missing = gang.total, joiner.missing
    if missing is None or not missing["some"]:
        where = "the leader was reached" if joiner.is_connected else "the leader was not reached"
        return NotInTime(f"the {total} members of the job did not gather in time: {where}")
    count, ranks = missing["n"], missing["some"]
    message = f"{count} of {total} members did not arrive in time: "
    places = tuple(gang.place(rank) for rank in ranks)
    return NotInTime(message + gang.named(ranks, count - len(ranks)), places, count)


class _Search:
    """Calls `locate` in a child process, because the loop must not wait for it."""

    def __init__(
        self,
        locate: Locate,
        deadline_s: float,
        loop: PeerLoop,
        found: Callable[[Leader | None], None],
    ) -> None:
        self._locate, self._deadline_s = locate, deadline_s
        self._loop, self._found = loop, found
        self._child: ForkedProcess | None = None

    def begin(self) -> None:
        """Search, unless a search runs."""
        if self._child is None:
            limit_s = min(_SEEK_S, max(0.0, self._deadline_s - time.monotonic()))
            self._child = ForkedProcess(answering(lambda: self._locate(limit_s)), ())
            self._loop.watch(self._child.channel.fileno(), self._take)

    def _take(self) -> None:
        assert self._child is not None
        self._loop.unwatch(self._child.channel.fileno())
        try:
            leader, error = self._child.channel.receive(_ANSWER_S)
        except (EOFError, OSError):
            leader = error = None  # it was killed
        self.close()
        if error is not None:
            raise error
        self._found(leader)

    def close(self) -> None:
        """End the search."""
        child, self._child = self._child, None
        if child is not None:
            child.end()
