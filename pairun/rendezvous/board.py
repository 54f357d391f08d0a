"""The leader's board: facts that can be set once, and named barriers."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from pairun.rendezvous.machine import Net
from pairun.rendezvous.wire import BadPeer, Message, pack

MAX_VALUE_BYTES = 16 * 1024
"""The maximum length of a value, as JSON."""

MAX_NAMES = 1024
"""The maximum number of facts, and of barriers."""

MAX_NAME = 253
"""The maximum length of the name of a fact, a barrier or a member, in characters."""

_MAX_COUNT = 1_000_000
_RETRY_S = 2.0


class _Wait(NamedTuple):
    """The fact or barrier for which a peer waits; at a barrier, with the member's name."""

    kind: str
    name: str
    member: str = ""


class Board:
    """Facts and barriers, and the peers that wait for them.

    Args:
        net: the connections to peers.
        max_held: maximum number of waiting peers; others are asked to retry later.

    Attributes:
        changed: whether the board has unsaved changes.
    """

    def __init__(self, net: Net, max_held: int) -> None:
        self.changed = False
        self._net = net
        self._max_held = max_held
        self._facts: dict[str, Any] = {}
        # barrier to arrived members, each with its waiting peer; None if asked to retry
        self._arrived: dict[str, dict[str, int | None]] = {}
        self._counts: dict[str, int] = {}
        self._open: set[str] = set()
        self._waiting: dict[tuple[str, str], set[int]] = {}
        self._waits: dict[int, _Wait] = {}

    @property
    def is_read(self) -> bool:
        """Whether a peer waits for a fact."""
        return any(wait.kind == "fact" for wait in self._waits.values())

    def put(self, peer: int, message: Message) -> None:
        """Set a fact if it is new or replaced, and respond with its value."""
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
        return self._answer(peer, self._outcome("fact", name))

    def get(self, peer: int, message: Message) -> None:
        """Respond with a fact's value, as soon as it is set."""
        name = _name(message)
        if name in self._facts:
            self._answer(peer, self._outcome("fact", name))
        else:
            self._hold(peer, _Wait("fact", name))

    def arrive(self, peer: int, message: Message) -> None:
        """Count a member at a barrier; the member waits for the others.

        A member whose connection ends is no longer counted, so all are released together.
        """
        name, member, count = _name(message), message.get("who"), message.get("of")
        if not isinstance(member, str) or len(member) > MAX_NAME:
            raise BadPeer("it sent an invalid member for a barrier")
        if type(count) is not int or not 0 < count <= _MAX_COUNT:
            raise BadPeer("it sent an invalid count for a barrier")
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
        return self._answer(peer, self._outcome("barrier", name))

    def part(self) -> None:
        """Tell the peers that wait for a fact that the leader ends."""
        packed = pack({"t": "bye"})
        for peer in [peer for peer, wait in self._waits.items() if wait.kind == "fact"]:
            self.closed(peer)
            self._net.send(peer, packed)
            self._net.close(peer)

    def closed(self, peer: int) -> None:
        """Forget for what a peer waits."""
        if wait := self._waits.pop(peer, None):
            self._waiting[wait.kind, wait.name].discard(peer)
            arrived = self._arrived.get(wait.name, {})
            if wait.kind == "barrier" and arrived.get(wait.member) == peer:
                del arrived[wait.member]

    def _outcome(self, kind: str, name: str) -> Message:
        return {"t": "is", "v": self._facts[name]} if kind == "fact" else {"t": "open"}

    def _answer(self, peer: int, message: Message) -> None:
        self.closed(peer)
        self._net.send(peer, pack(message))
        self._net.close(peer)

    def _hold(self, peer: int, wait: _Wait) -> bool:
        """Let a peer wait; returns False if too many wait, and asks the peer to retry."""
        self.closed(peer)
        if len(self._waits) >= self._max_held:
            self._answer(peer, {"t": "later", "s": _RETRY_S})
            return False
        self._waits[peer] = wait
        self._waiting.setdefault((wait.kind, wait.name), set()).add(peer)
        return True

    def _wake(self, kind: str, name: str) -> None:
        packed = pack(self._outcome(kind, name))
        for peer in self._waiting.pop((kind, name), ()):
            del self._waits[peer]
            self._net.send(peer, packed)
            self._net.close(peer)

    def dump(self) -> dict[str, Any]:
        """The state to save, as plain data.

        Skips peers that wait at a barrier: they lose their connection and retry.
        """
        counts = {name: count for name, count in self._counts.items() if name in self._open}
        return {"facts": self._facts, "counts": counts}

    def load(self, data: dict[str, Any]) -> None:
        """Restore what `dump` returned."""
        self._facts = dict(data["facts"])
        self._counts = dict(data["counts"])
        self._open = set(self._counts)


def _name(message: Message) -> str:
    name = message.get("k")
    if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME:
        raise BadPeer("it sent an invalid name")
    return name
