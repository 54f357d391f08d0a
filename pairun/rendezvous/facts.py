"""The client of the leader's board: shared facts and named barriers."""

from __future__ import annotations

import contextlib
import random
import socket
import time
from collections.abc import Callable
from typing import Any

from pairun.rendezvous.refusals import LeaderRefusal, NoKey, NotInTime
from pairun.rendezvous.roster import Address, JobKey
from pairun.rendezvous.wire import BadPeer, Channel, Message, pack

_CONNECT_S = 3.0
_SHORT_CONNECT_S = 1.0
"""The same for the first attempt, if the caller can check whether the leader has ended."""
_CHECK_S = 5.0
"""Seconds between two such checks."""
_ENDED = "the leader has ended"
_PAUSE_S = 0.2
_MAX_PAUSE_S = 5.0


class Facts:
    """Sends requests to the leader of a job; each call connects, and reconnects if needed.

    Args:
        address: the leader's address.
        job: this job's attempt.
        key: the job's key.

    Raises:
        NoKey: the job has no key (PR778).
    """

    def __init__(self, address: Address, job: JobKey, key: bytes | None) -> None:
        if key is None:
            raise NoKey
        self._address = address
        self._job = job
        self._key = key

    def put(
        self,
        name: str,
        value: Any,
        timeout_s: float,
        *,
        replace: bool = False,
        has_ended: Callable[[], bool] | None = None,
    ) -> Any:
        """Set a fact unless it is already set.

        Args:
            name: the fact's name.
            value: a value for JSON, up to 16 KiB.
            timeout_s: limit for the call, in seconds.
            replace: overwrite an earlier value; instances that have read it keep it.
            has_ended: whether the leader has ended for good; called if it cannot be reached.

        Returns:
            The fact's value.

        Raises:
            NotInTime: the leader cannot be reached, or has ended (PR775).
            LeaderRefusal: the value is too large, or the attempt differs (PR776).
        """
        request: Message = {"t": "put", "k": name, "v": value}
        if replace:
            request["replace"] = True
        late = f"the fact {name} was not written in time"
        return self._ask(request, timeout_s, late, has_ended=has_ended)["v"]

    def get(
        self,
        name: str,
        timeout_s: float,
        *,
        gone_s: float | None = None,
        has_ended: Callable[[], bool] | None = None,
    ) -> Any:
        """Wait for a fact.

        Args:
            name: the fact's name.
            timeout_s: how long to wait, in seconds.
            gone_s: give up after so many seconds without the leader; None for no limit.
            has_ended: whether the leader has ended for good; called if it cannot be reached.

        Raises:
            NotInTime: the fact was not set, or the leader cannot be reached, or has ended (PR775).
            LeaderRefusal: the attempt differs (PR776).
        """
        late = f"the fact {name} was not set in time"
        request: Message = {"t": "get", "k": name}
        return self._ask(request, timeout_s, late, gone_s=gone_s, has_ended=has_ended)["v"]

    def arrive(self, barrier: str, member: str, count: int, timeout_s: float) -> None:
        """Arrive at a barrier and wait until all members have arrived; each counts once.

        Args:
            barrier: its name; once open, it stays open.
            member: the name of the member that arrives.
            count: number of members that must arrive; the same for all.
            timeout_s: how long to wait, in seconds.

        Raises:
            NotInTime: some members did not arrive (PR775).
            LeaderRefusal: others wait for another count, or the attempt differs (PR776).
        """
        request = {"t": "arrive", "k": barrier, "who": member, "of": count}
        late = f"not all {count} members reached the barrier {barrier} in time"
        self._ask(request, timeout_s, late)

    def _ask(
        self,
        request: Message,
        timeout_s: float,
        late: str,
        *,
        gone_s: float | None = None,
        has_ended: Callable[[], bool] | None = None,
    ) -> Message:
        end = time.monotonic() + timeout_s
        packed = pack({**request, "job": self._job.uid, "attempt": self._job.attempt})
        trouble, pause_s = "", _PAUSE_S
        away_since: float | None = None
        connect_s = _CONNECT_S if has_ended is None else _SHORT_CONNECT_S
        checked_at = -_CHECK_S
        while True:
            began = time.monotonic()
            try:
                answer = self._answer(packed, end, connect_s)
                match answer["t"]:
                    case "is" | "open":
                        return answer
                    case "bye" if gone_s is not None:
                        raise NotInTime(f"{late} ({_ENDED})")
                    case "no" if answer.get("why") != "newer":
                        raise LeaderRefusal(str(answer.get("why")))
                trouble, away_since = "the leader was busy", None
            except TimeoutError:
                trouble = trouble or "the leader did not answer"
            except OSError as e:
                trouble = f"the leader was not reached: {e.strerror or e}"
                # A connection that lasted for some time before it broke had reached the leader.
                held = time.monotonic() - began > 2 * _CONNECT_S
                away_since = time.monotonic() if held else away_since or began
                if has_ended is not None and time.monotonic() - checked_at >= _CHECK_S:
                    checked_at, connect_s = time.monotonic(), _CONNECT_S
                    if has_ended():
                        raise NotInTime(f"{late} ({_ENDED})") from None
            except BadPeer as e:
                trouble = f"the server at its address is not the leader: {e}"
            left_s = end - time.monotonic()
            away_s = 0.0 if away_since is None else time.monotonic() - away_since
            is_gone = gone_s is not None and away_s >= gone_s
            if left_s <= 0 or is_gone:
                raise NotInTime(f"{late} ({trouble})")
            time.sleep(min(left_s, pause_s * random.uniform(0.5, 1.0)))  # noqa: S311
            pause_s = min(_MAX_PAUSE_S, pause_s * 2)

    def _answer(self, packed: Any, end: float, connect_s: float) -> Message:
        channel = Channel(self._key, serves=False)
        with self._connect(min(connect_s, max(0.001, end - time.monotonic()))) as sock:
            with contextlib.suppress(OSError):
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 20)
            sock.sendall(channel.greeting)
            asked = False
            while True:
                sock.settimeout(max(0.001, end - time.monotonic()))
                data = sock.recv(65536)
                if not data:
                    raise ConnectionResetError("the connection was closed")
                for packed_answer in channel.feed(data):
                    return packed_answer.message
                if channel.is_ready and not asked:
                    sock.sendall(channel.frame(packed))
                    asked = True

    def _connect(self, limit_s: float) -> socket.socket:
        try:
            return socket.create_connection(self._address, limit_s)
        except TimeoutError:
            # Packets to a deleted Pod's address may be dropped.
            raise ConnectionError("no answer from its address") from None
