"""`gather`: one member waits until all are here, and knows their addresses then."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Mapping
from typing import Protocol

from pairun.rendezvous.joining import Joiner
from pairun.rendezvous.leading import fan_of
from pairun.rendezvous.loop import Loop, PortTaken, close_quietly
from pairun.rendezvous.refusals import LeaderRefusal, NotInTime
from pairun.rendezvous.roster import Address, Gang, JobKey, Member, Roster
from pairun.rendezvous.wire import BadPeer

_TURN_S = 60.0
_SEEK_S = 120.0


class Locate(Protocol):
    """Finds the leader."""

    def __call__(self, timeout_s: float) -> Address | None:
        """Wait at most so long; None where it was not found. What it raises ends the gathering."""


def gather(
    own: Member,
    members_by_role: Mapping[str, int],
    job: JobKey,
    *,
    key: bytes | None,
    locate: Locate,
    deadline_s: float,
    log: Callable[[str], None],
    port: int = 0,
    told: Callable[[bool], None] = lambda _: None,
    leave_fd: int | None = None,
) -> Roster | None:
    """Join the job's leader and wait for all members. Rank 0 does so too, beside its server.

    Args:
        own: this member.
        members_by_role: how many members each role has, in the job's order; the first of the first
            role is the leader.
        job: the attempt to gather.
        key: of the job; None where it has none.
        locate: finds the leader. It is called in a thread of its own.
        deadline_s: when to give up, on the monotonic clock.
        log: takes lines for people.
        port: where to listen for other members in a large gang; any free one where it is taken.
        told: hears after every event whether somebody is there who will tell.
        leave_fd: once it can be read or is at its end this member goes, and the others count it as
            one that has come.

    Returns:
        The roster; None where it left before. Without a key None, once the leader says that all are here: a reason to look
        again where the truth is, never a proof.

    Raises:
        NotInTime: somebody did not come (PR775).
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
        loop.watch(search.fd, lambda: joiner.located(search.found(), time.monotonic()))
        if leave_fd is not None:
            loop.watch(leave_fd, joiner.leave)
        search.begin()
        while not joiner.is_finished(now := time.monotonic()):
            if now >= deadline_s and joiner.rows is None:
                raise _not_in_time(gang, joiner)
            wait_s = _TURN_S if joiner.rows is not None else deadline_s - now
            loop.turn(min(_TURN_S, wait_s))
            told(joiner.is_connected)
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
    """Listen for members below this one; None where that cannot be, and then it has none."""
    for number in (port, 0):
        with contextlib.suppress(PortTaken):
            return own_ip, loop.listen((own_ip, "::" if ":" in own_ip else "0.0.0.0"), number)[1]
    return None


def _not_in_time(gang: Gang, joiner: Joiner) -> NotInTime:
    total, found = gang.total, joiner.missing
    if found is None or not found["some"]:
        where = "its leader was reached" if joiner.is_connected else "its leader was not reached"
        return NotInTime(f"the {total} members of the job did not gather in time: {where}")
    more = found["n"] - len(found["some"])
    message = f"{found['n']} of {total} members did not come in time: "
    places = tuple(gang.place(rank) for rank in found["some"])
    return NotInTime(message + gang.named(found["some"], more), places, found["n"])


class _Search:
    """Calls `locate` in a thread, because it waits and the loop must not."""

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
        except BaseException as e:  # noqa: BLE001 - raised again where it is awaited
            result = e
        with self._closed:
            if self._done >= 0:
                self._result = result
                os.write(self._done, b".")

    def found(self) -> Address | None:
        os.read(self.fd, 1)
        if isinstance(self._result, BaseException):
            raise self._result
        return self._result

    def close(self) -> None:
        with self._closed:
            close_quietly(self._done)
            close_quietly(self.fd)
            self._done = -1
