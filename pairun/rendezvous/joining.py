"""A member's side: find the leader, join, perhaps be a parent of others. No input or output."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from pairun.rendezvous.machine import Net
from pairun.rendezvous.roster import Address, Gang, JobKey, Row, checked_address
from pairun.rendezvous.wire import BadPeer, Message, Packed, pack

BATCH_S = 0.05
"""How long a parent collects its children's news before it passes them on."""

DRAIN_S = 5.0
"""How long a parent stays for children that have not taken the roster."""

LEADER_GONE_S = 2.0
"""After how long without a leader that was there it is looked for anew."""

LEADER_SILENT_S = 15.0
"""The same for one that was never there: its Pod may have an address long before it runs."""

_MAX_SEARCH_S = 300.0
_FIRST_PAUSE_S = 0.1
_PER_S = 5000
"""How many newcomers a leader answers in a second, at least."""

_PAUSE_GROWTH = 5500
"""For how many members the longest pause between attempts is a second longer."""


class Joiner:
    """One member, until it has the roster and its children have it.

    Args:
        gang: the roles of the job.
        row: this member, as `Gang.row` has it.
        job: the attempt to join.
        net: leads to the peers.
        seek: begins to look for the leader; `located` is called with what was found.
        keyed: the peers have proven themselves; else no value that they say is taken.
        at: where this member listens, if it can be a parent.
        log: takes lines for people.
        rng: spreads members over time.

    Attributes:
        rows: the roster, once it is there.
        looked: without a key, that the leader said that all are here.
        refused: why the leader lets this member in never, in a word.
        missing: how many and which ranks are missing, as far as the leader told.
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
        self.looked = False
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
        self._stays = False
        self._was_in = False
        self._failures = 0
        self._contacted_at = 0.0
        self._again_at: float | None = None
        self._answer_by: float | None = None
        self._search_at: float | None = None
        self._search_s = LEADER_SILENT_S
        self._children: set[int] = set()
        self._below: dict[int, Row] = {}
        self._news: dict[int, Row] = {}
        self._news_at: float | None = None
        self._released: Packed | None = None
        self._drain_by: float | None = None
        self._is_leaving = False

    @property
    def is_connected(self) -> bool:
        """Whether the leader, or a parent below it, has taken this member in."""
        return self._stays

    def is_finished(self, now: float) -> bool:
        """Whether nothing is left to do, for itself and for its children."""
        if self.refused or self.looked or self._is_leaving:
            return True
        drained = not self._children or (self._drain_by is not None and now >= self._drain_by)
        return self.rows is not None and drained

    def located(self, address: Address | None, now: float) -> None:
        """The leader is there, or was not found this time."""
        if self.rows is not None:
            return
        if address is None:
            self._contacted_at = now
            self._pause(now)
            return
        spread = 0.0
        if address != self._leader:
            # A leader that comes last is found by all at once.
            spread = self._gang.total / _PER_S * self._rng.random()
            self._failures, self._search_at = 0, None
        self._leader = address
        self._again_at = now + spread

    def leave(self) -> None:
        """Go without the roster, whose content it has from elsewhere, and stay counted.

        A member that is told of, and not only connected, is not missing when its connection ends.
        """
        self._is_leaving = True
        if self._up is not None and self._stays:
            rows = [*self._news.values(), self._shown]
            self._net.send(self._up, self._message("have", {"m": rows}))
        self._leave()

    @property
    def _shown(self) -> Row:
        return self._row if self._keyed else [self._row[0], "", "", "", ""]

    def _pause(self, now: float, least_s: float = 0.0) -> None:
        """Plan the next attempt. What the last one took counts as waiting."""
        longest = 0.5 + self._gang.total / _PAUSE_GROWTH
        pause = min(longest, _FIRST_PAUSE_S * 2 ** min(self._failures, 10))
        self._failures += 1
        pause = max(least_s, pause) * self._rng.uniform(0.25, 1.0)
        self._again_at = max(now, self._contacted_at + pause)

    def _contact(self, address: Address, now: float, *, parent: bool) -> None:
        self._parent = address if parent else None
        self._contacted_at = now
        self._answer_by = now + 5.0 + self._gang.total / 2000
        self._up = self._net.connect(address)
        said: Message = {"m": self._shown}
        if self._at and self._keyed:
            said["at"] = self._at
        if self._below:
            said["kids"] = len(self._below)
        if self._lost and not parent:
            said["lost"], self._lost = self._lost, None
        self._net.send(self._up, self._message("join", said))

    def _message(self, word: str, more: Message) -> Packed:
        return pack({"t": word, "job": self._job.uid, "attempt": self._job.attempt, **more})

    def received(self, peer: int, packed: Packed, now: float) -> None:
        """Take what the leader, a parent or a child says; see `Machine`."""
        if peer == self._up:
            self._from_above(packed, now)
        else:
            self._from_below(peer, packed.message, now)

    def _from_above(self, packed: Packed, now: float) -> None:
        message = packed.message
        self._answer_by = None
        match message["t"]:
            case "stay":
                self._stays = self._was_in = True
                self._failures, self._search_at = 0, None
                self._learn_missing(message)
                if self._below:
                    self._news = dict(self._below)
                    self._news_at = now
            case "missing" if self._stays:
                self._learn_missing(message)
                for child in self._children:
                    self._net.send(child, packed)
            case "go" if self._keyed and self._parent is None:
                parent = checked_address(message.get("at"))
                if parent is None:
                    raise BadPeer("it sent no address")
                self._failures, self._search_at = 0, None
                self._leave()
                self._contact(parent, now, parent=True)
            case "all" if self._keyed:
                self._release(packed, now)
            case "look" if not self._keyed:
                self.looked = True
                self._leave()
            case "later":
                self._leave()
                self._pause(now, 1.0)
            case "no":
                self._refused(message, now)
            case _:
                raise BadPeer("it said what no leader says")

    def _learn_missing(self, message: Message) -> None:
        found = message.get("missing")
        if not isinstance(found, dict) or not isinstance(found.get("some"), list):
            raise BadPeer("it sent missing members that are none")
        ranks = [r for r in found["some"] if type(r) is int and 0 <= r < self._gang.total]
        count = found.get("n")
        if type(count) is not int or len(ranks) != len(found["some"]) or len(ranks) > count:
            raise BadPeer("it sent missing members that are none")
        self.missing = {"n": count, "some": ranks}
        if ranks:
            named = self._gang.named(ranks, count - len(ranks))
            self._log(
                f"{self._gang.total - count} of {self._gang.total} are here; missing: {named}"
            )

    def _release(self, packed: Packed, now: float) -> None:
        rows = packed.message.get("m")
        if not isinstance(rows, list) or len(rows) != self._gang.total:
            raise BadPeer("it sent a roster of another size")
        self.rows = rows
        self._released = packed
        self._drain_by = now + DRAIN_S
        self._leave()
        for child in self._children:
            self._net.send(child, packed)

    def _refused(self, message: Message, now: float) -> None:
        why = message.get("why")
        from_parent = self._parent
        self._leave()
        if from_parent:
            self._lost = from_parent
            self._pause(now)
        elif why == "newer":
            # Its new Pod will say otherwise.
            self._log("the leader of an older attempt is still there; waiting for the new one")
            self._search_at = min(self._search_at or now + LEADER_GONE_S, now + LEADER_GONE_S)
            self._pause(now, 1.0)
        elif self._keyed:
            self.refused = str(why)
        else:
            self._pause(now, 1.0)  # a hint to stop is no reason to stop

    def _leave(self) -> None:
        if self._up is not None:
            self._net.close(self._up)
        self._up, self._stays, self._answer_by = None, False, None

    def _from_below(self, peer: int, message: Message, now: float) -> None:
        if not self._keyed or message["t"] not in ("join", "have"):
            raise BadPeer("it asked for what a parent does not do")
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
            raise BadPeer("it sent members that are none")
        for row in map(self._gang.checked, rows):
            self._below[row[0]] = self._news[row[0]] = row
        if self._news_at is None:
            self._news_at = now + BATCH_S
        return None

    def closed(self, peer: int, now: float) -> None:
        """A child is gone, or what is above: then the leader is asked again."""
        if peer != self._up:
            self._children.discard(peer)
            return
        self._up, self._stays, self._answer_by = None, False, None
        if self._parent:
            self._lost = self._parent
        elif self._search_at is None:
            self._search_s = LEADER_GONE_S if self._was_in else LEADER_SILENT_S
            self._search_at = now + self._search_s
        self._pause(now)

    def tick(self, now: float) -> float | None:
        """Do what is due; see `Machine`."""
        if self._answer_by is not None and now >= self._answer_by and self._up is not None:
            self._net.close(self._up)
            self.closed(self._up, now)
        if self._again_at is not None and now >= self._again_at:
            self._again_at = None
            if self.rows is None:
                self._again(now)
        if self._news_at is not None and now >= self._news_at and self._stays:
            assert self._up is not None
            self._net.send(self._up, self._message("have", {"m": list(self._news.values())}))
            self._news.clear()
            self._news_at = None
        news_at = self._news_at if self._stays else None
        due = (self._answer_by, self._again_at, news_at, self._drain_by)
        return min((t for t in due if t is not None), default=None)

    def _again(self, now: float) -> None:
        if self._leader is None or (self._search_at is not None and now >= self._search_at):
            self._search_s = min(_MAX_SEARCH_S, self._search_s * 2)
            self._search_at = now + self._search_s
            self._seek()
        else:
            self._contact(self._leader, now, parent=False)
