"""The instances of the job, and their aliases."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from pairun.module import Context, job_instances


class Peer(NamedTuple):
    """One instance of the job: its aliases, its address."""

    names: tuple[str, ...]
    host: str
    port: int


def ssh_peers(ctx: Context, complaints: list[str]) -> Iterator[Peer]:
    """Every instance with an address and a port for ssh; no two have the same alias.

    Args:
        complaints: gets a sentence for each omitted alias and instance.
    """
    taken: set[str] = set()
    unknown = 0
    for instance in job_instances(ctx):
        ports = instance.ports.get("ssh")
        if not re.fullmatch(r"[\w.:%-]+", instance.host_ip) or not ports:
            unknown += 1
            continue
        names = dict.fromkeys(f"{r}-{instance.index}" for r in (instance.role, instance.job_role))
        free = tuple(n for n in names if n not in taken and re.fullmatch(r"[\w.~+-]+", n))
        if len(free) < len(names):
            left = ", ".join(n for n in names if n not in free)
            complaints.append(
                f"the alias {left} belongs to another instance, or is not a valid name for ssh"
            )
        taken.update(free)
        if free:
            yield Peer(free, instance.host_ip, ports[0])
    if unknown:
        complaints.append(f"{unknown} instances have no address for ssh yet, and no alias")
