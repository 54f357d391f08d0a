"""The instances of the job, and the tree in which they ask each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from pairun.module import Context, Permanent, Skip, cluster_path, parse_json

_MAX_CLUSTER = 256 * 1024 * 1024
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
    path = cluster_path(ctx)
    try:
        cluster: Mapping[str, Any] = parse_json(ctx.read_file(path, _MAX_CLUSTER) or b"{}")
        own, own_rank = cluster["own"], -1
        peers: list[Peer] = []
        for role in cluster["roles"]:
            for instance in role["instances"]:
                if (role["fc_name"], instance["index"]) == (own["role"], own["index"]):
                    own_rank = len(peers)
                host, ports = instance.get("host_ip"), (instance.get("ports") or {}).get("ssh")
                if not host or not ports:
                    raise Skip("the job does not wait for its instances: not all have an address")
                name = f"{role['fc_name']}-{instance['index']}"
                peers.append(Peer(len(peers), name, f"{host} port {ports[0]}"))
    except (ValueError, KeyError, TypeError) as e:
        raise Permanent(
            f"{path} does not have the format that init writes: {e!r}", fault="platform"
        ) from e
    if own_rank < 0:
        raise Permanent(f"{path} does not list this instance", fault="platform")
    return peers, own_rank


def children(rank: int, count: int) -> range:
    """The numbers of the instances that an instance asks."""
    first = rank * _FAN_OUT + 1
    return range(min(first, count), min(first + _FAN_OUT, count))


def descendants(rank: int, count: int) -> Iterator[int]:
    """The numbers of all instances below an instance."""
    for child in children(rank, count):
        yield child
        yield from descendants(child, count)
