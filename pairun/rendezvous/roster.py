"""The members of a job: its roles, their counts, and the Pods."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from pairun.module import Peer
from pairun.rendezvous.wire import BadPeer

Address = tuple[str, int]
Row = list[Any]
"""A member as JSON: rank, and the Pod's UID, IP, host IP and name."""

_MAX_TEXT = 253
"""The maximum length of a Pod's name (RFC 1123, as Kubernetes applies it)."""


class JobKey(NamedTuple):
    """One attempt of a job; only members of the same attempt gather.

    Attributes:
        uid: the UID of the job's object.
        attempt: the attempt's number; a newer one has a higher number.
    """

    uid: str
    attempt: int


class Gang(NamedTuple):
    """The roles of a job, in the job's order, with their counts; rank 0 leads.

    Attributes:
        roles: name and count of each.
    """

    roles: tuple[tuple[str, int], ...]

    @classmethod
    def of(cls, members_by_role: Mapping[str, int]) -> Gang:
        """Make a gang from a mapping in the job's order."""
        return cls(tuple(members_by_role.items()))

    @property
    def total(self) -> int:
        """The number of members."""
        return sum(count for _, count in self.roles)

    def rank(self, role: str, index: int) -> int:
        """The rank of a member.

        Raises:
            KeyError: the gang has no such member.
        """
        before = 0
        for name, count in self.roles:
            if name == role and 0 <= index < count:
                return before + index
            before += count
        raise KeyError(f"{role} {index}")

    def place(self, rank: int) -> tuple[str, int]:
        """The role and index of a rank below `total`."""
        for name, count in self.roles:
            if rank < count:
                return name, rank
            rank -= count
        raise IndexError(rank)

    def named(self, ranks: Iterable[int], more: int = 0) -> str:
        """Members for people, as ``worker 3, worker 5 and 7 more``."""
        words = ", ".join("{} {}".format(*self.place(rank)) for rank in ranks)
        return f"{words} and {more} more" if more else words

    def row(self, member: Peer) -> Row:
        """A member in its form for the wire."""
        rank = self.rank(member.role, member.index)
        return [rank, member.pod_uid, member.pod_ip, member.host_ip, member.pod_name]

    def checked(self, row: Any) -> Row:
        """Check a row that a peer sent.

        Raises:
            BadPeer: it is not a member of this gang.
        """
        if not (
            isinstance(row, list)
            and len(row) == 5
            and type(row[0]) is int
            and 0 <= row[0] < self.total
            and all(isinstance(text, str) and len(text) <= _MAX_TEXT for text in row[1:])
            and all(not address or _is_ip(address) for address in row[2:4])
        ):
            raise BadPeer("it sent a member that this job does not have")
        return row


class Roster(NamedTuple):
    """All members of a gathering, by rank.

    Attributes:
        members: all of them.
    """

    members: tuple[Peer, ...]

    @classmethod
    def of(cls, gang: Gang, rows: Iterable[Row]) -> Roster:
        """Make a roster from checked rows in any order.

        Raises:
            BadPeer: a member is missing, or an address is invalid.
        """
        by_rank = {row[0]: row for row in rows}
        if len(by_rank) != gang.total:
            raise BadPeer("it sent a roster with a gap")
        places = ((name, index) for name, count in gang.roles for index in range(count))
        members = tuple(Peer(*place, *by_rank[n][1:]) for n, place in enumerate(places))
        for address in {a for m in members for a in (m.pod_ip, m.host_ip) if a}:
            if not _is_ip(address):
                raise BadPeer("it sent a roster with an invalid address")
        return cls(members)


def checked_address(value: Any) -> Address | None:
    """Check an IP and port from a peer; None stays None.

    Raises:
        BadPeer: the address is invalid.
    """
    if value is None:
        return None
    if (
        isinstance(value, list)
        and len(value) == 2
        and isinstance(value[0], str)
        and type(value[1]) is int
        and 0 < value[1] < 65536
        and _is_ip(value[0])
    ):
        return value[0], value[1]
    raise BadPeer("it sent an invalid address")


def _is_ip(text: str) -> bool:
    try:
        socket.inet_pton(socket.AF_INET6 if ":" in text else socket.AF_INET, text)
    except (OSError, ValueError):
        return False
    return True
