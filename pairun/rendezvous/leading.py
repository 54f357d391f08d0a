"""The leader's state machine: the roster, the tree of members, facts and barriers. Does no I/O.

The first members to join become the leader's children and stay connected. Later members join one
of these. So with ten thousand members each has about a hundred connections.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import islice
from typing import Any

from pairun.rendezvous.board import Board
from pairun.rendezvous.machine import Net
from pairun.rendezvous.roster import Address, Gang, JobKey, Row, checked_address
from pairun.rendezvous.wire import BadPeer, Message, Packed, pack

MIN_FAN = 64
_SUSPECT_S = 30.0
_RETRY_S = 2.0
NAMED_MISSING = 10
"""How many missing members a report names."""


def fan_of(total: int) -> int:
    """The number of a leader's children that gives both levels of the tree equal size."""
    return max(MIN_FAN, math.isqrt(total))


class _Child:
    """A member that is connected to the leader."""

    def __init__(self, row: Row, at: Address | None) -> None:
        self.row = row
        self.at = at
        self.load = 0
        self.suspect_until = 0.0


class Leader:
    """The leader of a job, rank 0.

    Args:
        gang: the roles of the job.
        job: the attempt to gather; members of other attempts are refused.
        net: the connections to peers.
        keyed: whether peers authenticate with the job's key; if not, only their presence counts.
        log: takes lines for people.
        max_held: maximum number of waiting peers.
    """

    def __init__(
        self,
        gang: Gang,
        job: JobKey,
        net: Net,
        *,
        keyed: bool = True,
        log: Callable[[str], None] = lambda _: None,
        max_held: int = 10_000,
    ) -> None:
        self._gang = gang
        self._job = job
        self._net = net
        self._keyed = keyed
        self._log = log
        self._max_held = max_held
        self._board = Board(net, max_held)
        self._children: dict[int, _Child] = {}
        self._rows: dict[int, Row] = {}
        self._absent = dict.fromkeys(range(gang.total))
        self._packed: Packed | None = None
        self._roster_changed = False
        self._reported_missing = 0
        self._report_at: float | None = None

    @property
    def is_complete(self) -> bool:
        """Whether every member has joined."""
        return not self._absent

    @property
    def is_read(self) -> bool:
        """Whether a peer waits for a fact."""
        return self._board.is_read

    @property
    def changed(self) -> bool:
        """Whether the state has changed since the last `dump`."""
        return self._roster_changed or self._board.changed

    def received(self, peer: int, packed: Packed, now: float) -> None:
        """Respond to a message; see `Machine`."""
        message = packed.message
        if why := self._refusal(message):
            return self._dismiss(peer, {"t": "no", "why": why, "have": self._job.attempt})
        match message["t"]:
            case "join":
                return self._join(peer, message, now)
            case "have":
                return self._have(message, now)
            case "put" if self._keyed:
                return self._board.put(peer, message)
            case "get" if self._keyed:
                return self._board.get(peer, message)
            case "arrive" if self._keyed:
                return self._board.arrive(peer, message)
        raise BadPeer("it sent a message that a leader does not accept")

    def _refusal(self, message: Message) -> str | None:
        attempt = message.get("attempt")
        if message.get("job") != self._job.uid or type(attempt) is not int:
            return "job"
        if attempt != self._job.attempt:
            return "older" if attempt < self._job.attempt else "newer"
        return None

    def _join(self, peer: int, message: Message, now: float) -> None:
        row = self._gang.checked(message.get("m"))
        at, lost = checked_address(message.get("at")), checked_address(message.get("lost"))
        (row,) = self._learn([row], now)
        for child in self._children.values() if lost else ():
            if child.at == lost:
                child.suspect_until = now + _SUSPECT_S
                child.load -= 1
        if self.is_complete:
            self._net.send(peer, self._released())
            return self._net.close(peer)
        if not message.get("kids") and (parent := self._parent(now)):
            parent.load += 1
            return self._dismiss(peer, {"t": "go", "at": parent.at})
        if len(self._children) >= self._max_held:
            return self._dismiss(peer, {"t": "later", "s": _RETRY_S})
        self._children[peer] = _Child(row, at if self._keyed else None)
        self._net.send(peer, pack({"t": "stay", "missing": self._missing()}))
        return None

    def _parent(self, now: float) -> _Child | None:
        """The parent for a new member, each child in turn; None if it joins the leader directly."""
        fan = fan_of(self._gang.total)
        if len(self._children) < fan:
            return None
        for peer, child in self._children.items():
            if child.at and child.suspect_until <= now and child.load < 4 * fan:
                self._children[peer] = self._children.pop(peer)  # to the end of the queue
                return child
        return None

    def _have(self, message: Message, now: float) -> None:
        rows = message.get("m")
        if not isinstance(rows, list):
            raise BadPeer("it sent an invalid list of members")
        self._learn([self._gang.checked(row) for row in rows], now)

    def _learn(self, rows: list[Row], now: float) -> list[Row]:
        """Record members; returns the rows that are recorded."""
        if not self._keyed:
            rows = [[row[0], "", "", "", ""] for row in rows]
        was_complete = self.is_complete
        for row in rows:
            if self._rows.get(row[0]) != row:
                self._packed = None
                self._roster_changed = True
            self._rows[row[0]] = row
            self._absent.pop(row[0], None)
        if self.is_complete and not was_complete:
            self._log(f"all {self._gang.total} members are present")
            packed = self._released()
            for peer in self._children:
                self._net.send(peer, packed)
                self._net.close(peer)
            self._children.clear()
        elif self._report_at is None and not was_complete:
            self._report_at = now + max(1.0, self._gang.total / 1000)
        return rows

    def _released(self) -> Packed:
        if self._packed is None:
            message: Message = {"t": "look"}
            if self._keyed:
                message = {"t": "all", "m": [self._rows[n] for n in sorted(self._rows)]}
            self._packed = pack(message)
        return self._packed

    def _missing(self) -> dict[str, Any]:
        return {"n": len(self._absent), "some": list(islice(self._absent, NAMED_MISSING))}

    def _dismiss(self, peer: int, message: Message) -> None:
        self._children.pop(peer, None)
        self._net.send(peer, pack(message))
        self._net.close(peer)

    def part(self) -> None:
        """Tell the peers that wait for a fact that the leader ends for good."""
        self._board.part()

    def closed(self, peer: int, now: float) -> None:
        """Forget a peer; a connected member is missing until it rejoins or is replaced."""
        self._board.closed(peer)
        child = self._children.pop(peer, None)
        # The same list object: no other peer has reported this member since.
        if child and self._rows.get(child.row[0]) is child.row:
            del self._rows[child.row[0]]
            self._absent = dict.fromkeys(sorted((*self._absent, child.row[0])))
            self._roster_changed = True

    def tick(self, now: float) -> float | None:
        """Report missing members to the children, if the members have changed."""
        if self._report_at is None or now < self._report_at:
            return self._report_at
        self._report_at = None
        missing = self._missing()
        if missing["n"] not in (0, self._reported_missing):
            self._reported_missing = missing["n"]
            packed = pack({"t": "missing", "missing": missing})
            for peer in self._children:
                self._net.send(peer, packed)
        return None

    def dump(self) -> dict[str, Any]:
        """The state as plain data; resets `changed`."""
        self._roster_changed = self._board.changed = False
        return {
            "schema": 1,
            "job": list(self._job),
            "roles": [list(role) for role in self._gang.roles],
            "rows": list(self._rows.values()),
            "board": self._board.dump(),
        }

    def load(self, data: dict[str, Any]) -> bool:
        """Restore what `dump` returned; returns False if it is from another attempt or size.

        Raises:
            ValueError, KeyError, TypeError, AttributeError, BadPeer: the data are invalid.
        """
        roles = [list(role) for role in self._gang.roles]
        if data["schema"] != 1 or data["job"] != list(self._job) or data["roles"] != roles:
            return False
        rows = {row[0]: self._gang.checked(row) for row in data["rows"]}
        self._board.load(data["board"])
        self._rows = rows
        self._absent = {n: None for n in range(self._gang.total) if n not in rows}
        self._packed = None
        return True
