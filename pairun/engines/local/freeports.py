"""Pod uids for local instances, chosen so that the ports derived from them are free."""

from __future__ import annotations

import itertools
import socket
import uuid
from collections.abc import Callable

from pairun.errors import PairunError, Problem
from pairun.job.model import Role
from pairun.kube.ports import DEFAULT_RANGE, hashed_port, rendezvous_port

TRIES = 1000


def draw_uid(
    role: Role, index: int, taken: set[int], is_free: Callable[[int], bool] | None = None
) -> str:
    """Draw the uid of one Pod.

    Args:
        role: the Pod's role, with its ports.
        index: the Pod's number in it.
        taken: ports of other Pods; this Pod's are added.
        is_free: whether a port of this machine is free.

    Raises:
        PairunError: no uid with free ports was found.
    """
    labels = role.resources.ports.items()
    for _ in range(TRIES):
        uid = str(uuid.uuid4())
        ports = (hashed_port(uid, p, k, *DEFAULT_RANGE) for p, n in labels for k in range(n))
        mine: set[int] = set()
        for port in itertools.chain((rendezvous_port(uid),), ports):
            if port in mine or port in taken:
                break  # of many ports, one soon is taken
            mine.add(port)
        else:
            if all(map(is_free or port_is_free, mine)):
                taken |= mine
                return uid
    number = sum(role.resources.ports.values())
    message = f"no free ports for {role.name}-{index}: it needs {number}"
    raise PairunError(Problem("PR704", message, hint="run fewer instances with --instances"))


def port_is_free(port: int) -> bool:
    """Whether both a TCP and a UDP socket can be bound to a port of this machine."""
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        with socket.socket(socket.AF_INET, kind) as s:
            try:
                s.bind(("", port))
            except OSError:
                return False
    return True
