"""The interface between the protocol's state machines and their connections (or a simulation)."""

from __future__ import annotations

from typing import Protocol

from pairun.rendezvous.roster import Address
from pairun.rendezvous.wire import Packed


class Net(Protocol):
    """Connections to peers, each with a number. Its methods never call the machine."""

    def connect(self, address: Address) -> int:
        """Start a connection; messages wait until it is established."""

    def send(self, peer: int, packed: Packed) -> None:
        """Send as soon as the peer accepts data; does nothing if the peer is gone."""

    def close(self, peer: int) -> None:
        """Close after all data are sent; the machine gets no more events of this peer."""


class StateMachine(Protocol):
    """One side of the protocol. Times are seconds of any monotonic clock."""

    def received(self, peer: int, packed: Packed, now: float) -> None:
        """Handle a message.

        Raises:
            BadPeer: no member sends such a message; the connection ends, and `closed` follows.
        """

    def closed(self, peer: int, now: float) -> None:
        """Handle a lost or failed connection."""

    def tick(self, now: float) -> float | None:
        """Do what is due; returns when the next action is due, or None."""
