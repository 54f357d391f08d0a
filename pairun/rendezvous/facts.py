"""The client of the leader's board: facts that all share, and named barriers."""

from __future__ import annotations

import contextlib
import random
import socket
import time
from typing import Any

from pairun.rendezvous.refusals import LeaderRefusal, NoKey, NotInTime
from pairun.rendezvous.roster import Address, JobKey
from pairun.rendezvous.wire import BadPeer, Channel, Message, pack

_CONNECT_S = 3.0
_PAUSE_S = 0.2
_MAX_PAUSE_S = 5.0


class Facts:
    """Asks the leader of a job. Each call is a connection; one that breaks is made again.

    Args:
        address: of the leader.
        job: the attempt that is meant.
        key: of the job.

    Raises:
        NoKey: there is no key (PR778).
    """

    def __init__(self, address: Address, job: JobKey, key: bytes | None) -> None:
        if key is None:
            raise NoKey
        self._address = address
        self._job = job
        self._key = key

    def put(self, name: str, value: Any, timeout_s: float, *, replace: bool = False) -> Any:
        """Set a fact, unless somebody was first.

        Args:
            name: of the fact.
            value: what JSON can say, up to 16 KiB.
            timeout_s: how long this may take.
            replace: the value counts also where there is one; who has read it keeps it.

        Returns:
            The value that counts.

        Raises:
            NotInTime: the leader was not reached (PR775).
            LeaderRefusal: the value is too large, or the attempt another one (PR776).
        """
        said: Message = {"t": "put", "k": name, "v": value}
        if replace:
            said["replace"] = True
        return self._ask(said, timeout_s, f"the fact {name} was not written in time")["v"]

    def get(self, name: str, timeout_s: float, *, gone_s: float | None = None) -> Any:
        """Wait for a fact.

        Args:
            name: of the fact.
            timeout_s: how long to wait.
            gone_s: after so long without reaching the leader it is taken for gone; None waits on.

        Raises:
            NotInTime: nobody has set it, or the leader was not reached (PR775).
            LeaderRefusal: the attempt is another one (PR776).
        """
        said = {"t": "get", "k": name}
        late = f"the fact {name} did not come in time"
        return self._ask(said, timeout_s, late, gone_s=gone_s)["v"]

    def arrive(self, barrier: str, member: str, count: int, timeout_s: float) -> None:
        """Come to a barrier and wait until all have come; to come again counts once.

        Args:
            barrier: its name. A barrier that was opened stays open.
            member: who comes.
            count: how many must come; the same for all.
            timeout_s: how long to wait.

        Raises:
            NotInTime: not all came (PR775).
            LeaderRefusal: others wait for another count, or the attempt is another one (PR776).
        """
        said = {"t": "arrive", "k": barrier, "who": member, "of": count}
        self._ask(said, timeout_s, f"not all {count} came to the barrier {barrier} in time")

    def _ask(
        self, said: Message, timeout_s: float, late: str, *, gone_s: float | None = None
    ) -> Message:
        end = time.monotonic() + timeout_s
        packed = pack({**said, "job": self._job.uid, "attempt": self._job.attempt})
        trouble, pause_s = "", _PAUSE_S
        away_since: float | None = None
        while True:
            began = time.monotonic()
            try:
                answer = self._answer(packed, end)
                match answer["t"]:
                    case "is" | "open":
                        return answer
                    case "no" if answer.get("why") != "newer":
                        raise LeaderRefusal(str(answer.get("why")))
                trouble, away_since = "the leader was busy", None
            except TimeoutError:
                trouble = trouble or "the leader gave no answer"
            except OSError as e:
                trouble = f"the leader was not reached: {e.strerror or e}"
                # A connection that was held until it broke says that it was there.
                held = time.monotonic() - began > 2 * _CONNECT_S
                away_since = time.monotonic() if held else away_since or began
            except BadPeer as e:
                trouble = f"what answers is not the leader: {e}"
            left_s = end - time.monotonic()
            away_s = 0.0 if away_since is None else time.monotonic() - away_since
            is_gone = gone_s is not None and away_s >= gone_s
            if left_s <= 0 or is_gone:
                raise NotInTime(f"{late} ({trouble})")
            time.sleep(min(left_s, pause_s * random.uniform(0.5, 1.0)))  # noqa: S311
            pause_s = min(_MAX_PAUSE_S, pause_s * 2)

    def _answer(self, packed: Any, end: float) -> Message:
        channel = Channel(self._key, serves=False)
        with self._connect(max(0.001, end - time.monotonic())) as sock:
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
                for found in channel.feed(data):
                    return found.message
                if channel.is_ready and not asked:
                    sock.sendall(channel.frame(packed))
                    asked = True

    def _connect(self, left_s: float) -> socket.socket:
        try:
            return socket.create_connection(self._address, min(_CONNECT_S, left_s))
        except TimeoutError:
            # Where a Pod was, its address may swallow everything.
            raise ConnectionError("nothing answers at its address") from None
