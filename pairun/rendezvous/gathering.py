"""`gather`: one member waits for all others and gets their addresses."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Mapping
from typing import Protocol

from pairun.module import Peer
from pairun.rendezvous.joining import Joiner
from pairun.rendezvous.leading import fan_of
from pairun.rendezvous.loop import Loop, close_quietly
from pairun.rendezvous.refusals import LeaderRefusal, NotInTime, PortTaken
from pairun.rendezvous.roster import Address, Gang, JobKey, Roster
from pairun.rendezvous.wire import BadPeer

_TURN_S = 60.0
_SEEK_S = 120.0


class Locate(Protocol):
    """Finds the leader."""

    def __call__(self, timeout_s: float) -> Address | None:
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
    leave_fd: int | None = None,
) -> Roster | None:
    """Join the job's leader and wait for all members; rank 0 joins its own server.

    Args:
        own: this member.
        members_by_role: the number of members of each role, in the job's order; the first member of
            the first role is the leader.
        job: the attempt to gather.
        key: the job's key, or None if it has none.
        locate: finds the leader; called in a separate thread.
        deadline_s: time at which it gives up, on the monotonic clock.
        log: takes lines for people.
        port: the port for other members in a large gang; if it is in use, any free one.
        on_turn: called after every event; its argument is whether the leader or a parent accepted
            us.
        leave_fd: when this is readable or at its end, this member leaves, and stays counted.

    Returns:
        The roster; None if this member left. Without a key: None, once the leader reports all
        members. That is no proof; read the cluster's objects then.

    Raises:
        NotInTime: members are missing (PR775).
        LeaderRefusal: the leader belongs to another job, or to a newer attempt of this one (PR776).
    """
    gang = Gang.of(members_by_role)
    loop = Loop(key, log)
    search = _Search(locate, deadline_s)
    try:
        at = None
        if key is not None and gang.total > fan_of(gang.total):
            at = _listen(loop, own.pod_ip, port)
        joiner = Joiner(
            gang, gang.row(own), job, loop, search.begin, keyed=key is not None, at=at, log=log
        )
        loop.machine = joiner
        loop.watch(search.fd, lambda: joiner.located(search.result(), time.monotonic()))
        if leave_fd is not None:
            loop.watch(leave_fd, joiner.leave)
        search.begin()
        while not joiner.is_finished(now := time.monotonic()):
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


def _listen(loop: Loop, own_ip: str, port: int) -> Address | None:
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
    """Calls `locate` in a thread, because the loop must not wait for it."""

    def __init__(self, locate: Locate, deadline_s: float) -> None:
        self._locate = locate
        self._deadline_s = deadline_s
        self._result: Address | BaseException | None = None
        self._closed = threading.Lock()
        self.fd, self._done = os.pipe()

    def begin(self) -> None:
        threading.Thread(target=self._run, name="locate", daemon=True).start()

    def _run(self) -> None:
        left_s = max(0.0, self._deadline_s - time.monotonic())
        try:
            result: Address | BaseException | None = self._locate(min(_SEEK_S, left_s))
        except BaseException as e:  # noqa: BLE001 - `result` raises it
            result = e
        with self._closed:
            if self._done >= 0:
                self._result = result
                os.write(self._done, b".")

    def result(self) -> Address | None:
        os.read(self.fd, 1)
        if isinstance(self._result, BaseException):
            raise self._result
        return self._result

    def close(self) -> None:
        with self._closed:
            close_quietly(self._done)
            close_quietly(self.fd)
            self._done = -1
