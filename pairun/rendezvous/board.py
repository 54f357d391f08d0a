"""The leader's board: small facts that the first writer decides, and named barriers."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from pairun.rendezvous.machine import Net
from pairun.rendezvous.wire import BadPeer, Message, pack

MAX_VALUE_BYTES = 16 * 1024
"""The longest value, as JSON."""

MAX_NAMES = 1024
"""How many facts there may be, and how many barriers."""

MAX_NAME = 253
"""The longest name of a fact, a barrier or a member, in characters."""

_MAX_COUNT = 1_000_000
_LATER_S = 2.0


class _Wait(NamedTuple):
    """What a peer waits for: a fact, or a barrier, and then as which member."""

    kind: str
    name: str
    member: str = ""


class Board:
    """Facts and barriers, and the peers that wait for them.

    Args:
        net: leads to the peers.
        max_held: how many peers may wait at once; more are told to ask again.

    Attributes:
        changed: there is something that was not saved yet.
    """

    def __init__(self, net: Net, max_held: int) -> None:
        self.changed = False
        self._net = net
        self._max_held = max_held
        self._facts: dict[str, Any] = {}
        # Who has come, and which peer waits for it; None for one that was told to come again.
        self._arrived: dict[str, dict[str, int | None]] = {}
        self._counts: dict[str, int] = {}
        self._open: set[str] = set()
        self._waiting: dict[tuple[str, str], set[int]] = {}
        self._waits: dict[int, _Wait] = {}

    @property
    def is_read(self) -> bool:
        """Whether somebody waits for a fact."""
        return any(wait.kind == "fact" for wait in self._waits.values())

    def put(self, peer: int, message: Message) -> None:
        """Keep a value, unless there is one that it does not replace; tell which one counts."""
        name = _name(message)
        if name not in self._facts or message.get("replace") is True:
            value = message.get("v")
            if len(json.dumps(value)) > MAX_VALUE_BYTES:
                return self._answer(peer, {"t": "no", "why": "size"})
            if len(self._facts) >= MAX_NAMES and name not in self._facts:
                return self._answer(peer, {"t": "no", "why": "full"})
            self._facts[name] = value
            self.changed = True
            self._wake("fact", name)
        return self._answer(peer, self._said("fact", name))

    def get(self, peer: int, message: Message) -> None:
        """Tell a value, now or when it is there."""
        name = _name(message)
        if name in self._facts:
            self._answer(peer, self._said("fact", name))
        else:
            self._hold(peer, _Wait("fact", name))

    def arrive(self, peer: int, message: Message) -> None:
        """Count a member at a barrier, and let it wait for the others.

        Who gives up is not counted any more: all that come are released together.
        """
        name, member, count = _name(message), message.get("who"), message.get("of")
        if not isinstance(member, str) or len(member) > MAX_NAME:
            raise BadPeer("it sent a barrier's member that is none")
        if type(count) is not int or not 0 < count <= _MAX_COUNT:
            raise BadPeer("it sent a barrier's count that is none")
        if name not in self._open:
            if name not in self._counts and len(self._counts) >= MAX_NAMES:
                return self._answer(peer, {"t": "no", "why": "full"})
            if self._counts.setdefault(name, count) != count:
                return self._answer(peer, {"t": "no", "why": "count", "have": self._counts[name]})
            arrived = self._arrived.setdefault(name, {})
            if len(arrived.keys() | {member}) < count:
                is_held = self._hold(peer, _Wait("barrier", name, member))
                arrived[member] = peer if is_held else None
                return None
            self._open.add(name)
            self.changed = True
            del self._arrived[name]
            self._wake("barrier", name)
        return self._answer(peer, self._said("barrier", name))

    def closed(self, peer: int) -> None:
        """A peer waits no more."""
        if wait := self._waits.pop(peer, None):
            self._waiting[wait.kind, wait.name].discard(peer)
            arrived = self._arrived.get(wait.name, {})
            if wait.kind == "barrier" and arrived.get(wait.member) == peer:
                del arrived[wait.member]

    def _said(self, kind: str, name: str) -> Message:
        return {"t": "is", "v": self._facts[name]} if kind == "fact" else {"t": "open"}

    def _answer(self, peer: int, message: Message) -> None:
        self.closed(peer)
        self._net.send(peer, pack(message))
        self._net.close(peer)

    def _hold(self, peer: int, wait: _Wait) -> bool:
        """Let a peer wait; False where there are too many, and it was told to ask again."""
        self.closed(peer)
        if len(self._waits) >= self._max_held:
            self._answer(peer, {"t": "later", "s": _LATER_S})
            return False
        self._waits[peer] = wait
        self._waiting.setdefault((wait.kind, wait.name), set()).add(peer)
        return True

    def _wake(self, kind: str, name: str) -> None:
        packed = pack(self._said(kind, name))
        for peer in self._waiting.pop((kind, name), ()):
            del self._waits[peer]
            self._net.send(peer, packed)
            self._net.close(peer)

    def dump(self) -> dict[str, Any]:
        """What is to be kept when the process ends, as plain data.

        Who waits at a barrier has lost its connection then, and comes again.
        """
        counts = {name: count for name, count in self._counts.items() if name in self._open}
        return {"facts": self._facts, "counts": counts}

    def load(self, data: dict[str, Any]) -> None:
        """Take over what `dump` gave."""
        self._facts = dict(data["facts"])
        self._counts = dict(data["counts"])
        self._open = set(self._counts)


def _name(message: Message) -> str:
    name = message.get("k")
    if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME:
        raise BadPeer("it sent a name that is none")
    return name
