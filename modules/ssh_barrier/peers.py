"""The instances of the job, and the tree in which they ask each other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from pairun.module import Context, Skip, job_instances, own_rank

_FAN_OUT = 16
"""How many instances one instance asks."""


class Peer(NamedTuple):
    """One instance: its number among all, its alias, its address."""

    rank: int
    name: str
    place: str


def all_peers(ctx: Context) -> tuple[list[Peer], int]:
    """Every instance of the job, and the number of this one.

    Raises:
        Skip: an instance has no address for ssh.
        Permanent: ``cluster.json`` cannot be used.
    """
    peers: list[Peer] = []
    for rank, instance in enumerate(instances := job_instances(ctx)):
        ports = instance.ports.get("ssh")
        if not instance.host_ip or not ports:
            raise Skip("the job does not wait for its instances: not all have an address")
        name = f"{instance.role}-{instance.index}"
        peers.append(Peer(rank, name, f"{instance.host_ip} port {ports[0]}"))
    return peers, own_rank(instances)


def children(rank: int, count: int) -> range:
    """The numbers of the instances that an instance asks."""
    first = rank * _FAN_OUT + 1
    return range(min(first, count), min(first + _FAN_OUT, count))


def descendants(rank: int, count: int) -> Iterator[int]:
    """The numbers of all instances below an instance."""
    for child in children(rank, count):
        yield child
        yield from descendants(child, count)
