"""A member's state machine: find the leader, join, serve child members. Does no I/O."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from pairun.rendezvous.machine import Net
from pairun.rendezvous.roster import Address, Gang, JobKey, Row, checked_address
from pairun.rendezvous.wire import BadPeer, Message, Packed, pack

BATCH_S = 0.05
"""How long a parent collects its children's reports before it forwards them, in seconds."""

_DRAIN_S = 5.0
"""How long a parent waits for children that have no roster yet, in seconds."""

LEADER_GONE_S = 2.0
"""How long a member waits for a lost leader before it searches again, in seconds."""

LEADER_SILENT_S = 15.0
"""The same if the leader never responded: its Pod may have an address long before it runs."""

_MAX_SEARCH_S = 300.0
_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 0.3
"""The longest pause between attempts in a small gang: a leader that starts last is found so much later."""

_ANSWERS_PER_S = 8000
"""How many new members per second a leader can answer, at least."""

_MEMBERS_PER_PAUSE_S = 18_000
"""The longest pause between attempts grows by one second for so many members."""


class Joiner:
    """One member, until it and its children have the roster.

    Args:
        gang: the roles of the job.
        row: this member, as `Gang.row` returns it.
        job: the attempt to join.
        net: the connections to peers.
        seek: starts a search for the leader; its result is passed to `located`.
        keyed: whether peers authenticate with the job's key; if not, their values are ignored.
        at: the address where this member listens, if it can be a parent.
        log: takes lines for people.
        rng: spreads members over time.

    Attributes:
        rows: the roster, once received.
        all_reported: without a key, whether the leader reports all members present.
        refused: one word for why the leader refuses this member for good.
        missing: the number and some ranks of missing members, as the leader reports them.
    """

    def __init__(
        self,
        gang: Gang,
        row: Row,
        job: JobKey,
        net: Net,
        seek: Callable[[], None],
        *,
        keyed: bool = True,
        at: Address | None = None,
        log: Callable[[str], None] = lambda _: None,
        rng: random.Random | None = None,
    ) -> None:
        self.rows: list[Row] | None = None
        self.all_reported = False
        self.refused: str | None = None
        self.missing: dict[str, Any] | None = None
        self._gang = gang
        self._row = row
        self._job = job
        self._net = net
        self._seek = seek
        self._keyed = keyed
        self._at = at
        self._log = log
        self._rng = rng or random.Random()  # noqa: S311 - spreads load, guards nothing
        self._leader: Address | None = None
        self._parent: Address | None = None
        self._lost: Address | None = None
        self._up: int | None = None
        self._accepted = False
        self._was_accepted = False
        self._failures = 0
        self._contacted_at = 0.0
        self._retry_at: float | None = None
        self._answer_by: float | None = None
        self._search_at: float | None = None
        self._search_s = LEADER_SILENT_S
        self._children: set[int] = set()
        self._below: dict[int, Row] = {}
        self._unreported: dict[int, Row] = {}
        self._report_at: float | None = None
        self._released: Packed | None = None
        self._drain_by: float | None = None
        self._is_leaving = False

    @property
    def is_connected(self) -> bool:
        """Whether the leader or a parent has accepted this member."""
        return self._accepted

    def is_finished(self, now: float) -> bool:
        """Whether this member and its children need nothing more."""
        if self.refused or self.all_reported or self._is_leaving:
            return True
        drained = not self._children or (self._drain_by is not None and now >= self._drain_by)
        return self.rows is not None and drained

    def located(self, address: Address | None, now: float) -> None:
        """Handle the result of a search: the leader's address, or None."""
        if self.rows is not None:
            return
        if address is None:
            self._contacted_at = now
            self._pause(now)
            return
        spread = 0.0
        if address != self._leader:
            # If the leader starts last, all members find it at the same time.
            spread = self._gang.total / _ANSWERS_PER_S * self._rng.random()
            self._failures, self._search_at = 0, None
        self._leader = address
        self._retry_at = now + spread

    def leave(self) -> None:
        """Leave without the roster, because its content is already known; stay counted.

        A reported member is not missing when its connection ends.
        """
        self._is_leaving = True
        if self._up is not None and self._accepted:
            rows = [*self._unreported.values(), self._public_row]
            self._net.send(self._up, self._message("have", {"m": rows}))
        self._disconnect()

    @property
    def _public_row(self) -> Row:
        return self._row if self._keyed else [self._row[0], "", "", "", ""]

    def _pause(self, now: float, least_s: float = 0.0) -> None:
        """Schedule the next attempt; the last one's duration counts as waiting."""
        longest = _LONGEST_PAUSE_S + self._gang.total / _MEMBERS_PER_PAUSE_S
        pause = min(longest, _FIRST_PAUSE_S * 2 ** min(self._failures, 10))
        self._failures += 1
        pause = max(least_s, pause) * self._rng.uniform(0.25, 1.0)
        self._retry_at = max(now, self._contacted_at + pause)

    def _contact(self, address: Address, now: float, *, parent: bool) -> None:
        self._parent = address if parent else None
        self._contacted_at = now
        self._answer_by = now + 5.0 + self._gang.total / 2000
        self._up = self._net.connect(address)
        fields: Message = {"m": self._public_row}
        if self._at and self._keyed:
            fields["at"] = self._at
        if self._below:
            fields["kids"] = len(self._below)
        if self._lost and not parent:
            fields["lost"], self._lost = self._lost, None
        self._net.send(self._up, self._message("join", fields))

    def _message(self, word: str, fields: Message) -> Packed:
        return pack({"t": word, "job": self._job.uid, "attempt": self._job.attempt, **fields})

    def received(self, peer: int, packed: Packed, now: float) -> None:
        """Handle a message from the leader, a parent or a child; see `Machine`."""
        if peer == self._up:
            self._from_above(packed, now)
        else:
            self._from_below(peer, packed.message, now)

    def _from_above(self, packed: Packed, now: float) -> None:
        message = packed.message
        self._answer_by = None
        match message["t"]:
            case "stay":
                self._accepted = self._was_accepted = True
                self._failures, self._search_at = 0, None
                self._learn_missing(message)
                if self._below:
                    self._unreported = dict(self._below)
                    self._report_at = now
            case "missing" if self._accepted:
                self._learn_missing(message)
                for child in self._children:
                    self._net.send(child, packed)
            case "go" if self._keyed and self._parent is None:
                parent = checked_address(message.get("at"))
                if parent is None:
                    raise BadPeer("it sent no address")
                self._failures, self._search_at = 0, None
                self._disconnect()
                self._contact(parent, now, parent=True)
            case "all" if self._keyed:
                self._release(packed, now)
            case "look" if not self._keyed:
                self.all_reported = True
                self._disconnect()
            case "later":
                self._disconnect()
                self._pause(now, 1.0)
            case "no":
                self._refused(message, now)
            case _:
                raise BadPeer("it sent a message that no leader sends")

    def _learn_missing(self, message: Message) -> None:
        missing = message.get("missing")
        if not isinstance(missing, dict) or not isinstance(missing.get("some"), list):
            raise BadPeer("it sent an invalid list of missing members")
        ranks = [r for r in missing["some"] if type(r) is int and 0 <= r < self._gang.total]
        count = missing.get("n")
        if type(count) is not int or len(ranks) != len(missing["some"]) or len(ranks) > count:
            raise BadPeer("it sent an invalid list of missing members")
        self.missing = {"n": count, "some": ranks}
        if ranks:
            named = self._gang.named(ranks, count - len(ranks))
            self._log(
                f"{self._gang.total - count} of {self._gang.total} are present; missing: {named}"
            )

    def _release(self, packed: Packed, now: float) -> None:
        rows = packed.message.get("m")
        if not isinstance(rows, list) or len(rows) != self._gang.total:
            raise BadPeer("it sent a roster of another size")
        self.rows = rows
        self._released = packed
        self._drain_by = now + _DRAIN_S
        self._disconnect()
        for child in self._children:
            self._net.send(child, packed)

    def _refused(self, message: Message, now: float) -> None:
        why = message.get("why")
        from_parent = self._parent
        self._disconnect()
        if from_parent:
            self._lost = from_parent
            self._pause(now)
        elif why == "newer":
            # This attempt's leader will replace it.
            self._log("the leader of an older attempt still answers; waiting for the new leader")
            self._search_at = min(self._search_at or now + LEADER_GONE_S, now + LEADER_GONE_S)
            self._pause(now, 1.0)
        elif self._keyed:
            self.refused = str(why)
        else:
            self._pause(now, 1.0)  # an unauthenticated refusal does not end the gathering

    def _disconnect(self) -> None:
        if self._up is not None:
            self._net.close(self._up)
        self._up, self._accepted, self._answer_by = None, False, None

    def _from_below(self, peer: int, message: Message, now: float) -> None:
        if not self._keyed or message["t"] not in ("join", "have"):
            raise BadPeer("it sent a message that a parent does not accept")
        if (message.get("job"), message.get("attempt")) != tuple(self._job):
            self._net.send(peer, pack({"t": "no", "why": "job"}))
            return self._net.close(peer)
        rows = message.get("m")
        if message["t"] == "join":
            rows = [rows]
            self._children.add(peer)
            if self._released:
                return self._net.send(peer, self._released)
            missing = self.missing or {"n": self._gang.total, "some": []}
            self._net.send(peer, pack({"t": "stay", "missing": missing}))
        if not isinstance(rows, list):
            raise BadPeer("it sent an invalid list of members")
        for row in map(self._gang.checked, rows):
            self._below[row[0]] = self._unreported[row[0]] = row
        if self._report_at is None:
            self._report_at = now + BATCH_S
        return None

    def closed(self, peer: int, now: float) -> None:
        """Handle the loss of a child, or of the leader or parent; then reconnect to the leader."""
        if peer != self._up:
            self._children.discard(peer)
            return
        self._up, self._accepted, self._answer_by = None, False, None
        if self._parent:
            self._lost = self._parent
        elif self._search_at is None:
            self._search_s = LEADER_GONE_S if self._was_accepted else LEADER_SILENT_S
            self._search_at = now + self._search_s
        self._pause(now)

    def tick(self, now: float) -> float | None:
        """Do what is due; see `Machine`."""
        if self._answer_by is not None and now >= self._answer_by and self._up is not None:
            self._net.close(self._up)
            self.closed(self._up, now)
        if self._retry_at is not None and now >= self._retry_at:
            self._retry_at = None
            if self.rows is None:
                self._retry(now)
        if self._report_at is not None and now >= self._report_at and self._accepted:
            assert self._up is not None
            self._net.send(self._up, self._message("have", {"m": list(self._unreported.values())}))
            self._unreported.clear()
            self._report_at = None
        report_at = self._report_at if self._accepted else None
        due = (self._answer_by, self._retry_at, report_at, self._drain_by)
        return min((t for t in due if t is not None), default=None)

    def _retry(self, now: float) -> None:
        if self._leader is None or (self._search_at is not None and now >= self._search_at):
            self._search_s = min(_MAX_SEARCH_S, self._search_s * 2)
            self._search_at = now + self._search_s
            self._seek()
        else:
            self._contact(self._leader, now, parent=False)
