"""What a protocol's state machine sees of the world, be it sockets or a simulation."""

from __future__ import annotations

from typing import Protocol

from pairun.rendezvous.roster import Address
from pairun.rendezvous.wire import Packed


class Net(Protocol):
    """Connections to peers, each known by a number. Nothing here calls back at once."""

    def connect(self, address: Address) -> int:
        """Begin a connection; what is sent meanwhile waits."""

    def send(self, peer: int, packed: Packed) -> None:
        """Send, as soon as the peer takes it; nothing happens where it is gone."""

    def close(self, peer: int) -> None:
        """Close when all is sent; the machine hears no more of this peer."""


class Machine(Protocol):
    """A side of the protocol. Moments are seconds of any clock that never goes back."""

    def received(self, peer: int, packed: Packed, now: float) -> None:
        """A message has come.

        Raises:
            BadPeer: no member would send it; the connection ends, and `closed` follows.
        """

    def closed(self, peer: int, now: float) -> None:
        """A connection was lost, or could not be made."""

    def tick(self, now: float) -> float | None:
        """Do what is due; returns when to come again, or None when nothing is planned."""
