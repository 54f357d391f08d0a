"""The instances of the job, and their aliases."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from pairun.module import Context, Permanent, cluster_path, parse_json

MAX_BYTES = 256 * 1024 * 1024


class Peer(NamedTuple):
    """One instance of the job: its aliases, its address."""

    names: tuple[str, ...]
    host: str
    port: int


def instances(ctx: Context) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """The role and the instance of every task in ``cluster.json``.

    Raises:
        Permanent: init's file does not have the expected form.
    """
    path = cluster_path(ctx)
    try:
        roles = parse_json(ctx.read_file(path, MAX_BYTES) or b'{"roles": []}')["roles"]
        for role in roles:
            for instance in role["instances"]:
                yield role, instance
    except (ValueError, KeyError, TypeError) as e:
        raise Permanent(
            f"{path} does not have the format that init writes: {e!r}", fault="platform"
        ) from e


def ssh_peers(ctx: Context, complaints: list[str]) -> Iterator[Peer]:
    """Every instance with an address and a port for ssh; no two have the same alias.

    Args:
        complaints: gets a sentence for each omitted alias and instance.
    """
    taken: set[str] = set()
    unknown = 0
    for role, instance in instances(ctx):
        ports = (instance.get("ports") or {}).get("ssh") or ()
        if not re.fullmatch(r"[\w.:%-]+", instance.get("host_ip") or "") or not ports:
            unknown += 1
            continue
        names = dict.fromkeys(f"{role[n]}-{instance['index']}" for n in ("fc_name", "name"))
        free = tuple(n for n in names if n not in taken and re.fullmatch(r"[\w.~+-]+", n))
        if len(free) < len(names):
            left = ", ".join(n for n in names if n not in free)
            complaints.append(
                f"the alias {left} belongs to another instance, or is not a valid name for ssh"
            )
        taken.update(free)
        if free:
            yield Peer(free, str(instance["host_ip"]), int(ports[0]))
    if unknown:
        complaints.append(f"{unknown} instances have no address for ssh yet, and no alias")
