"""Pod uids for local instances, chosen so that the ports derived from them are free."""

from __future__ import annotations

import itertools
import socket
import uuid
from collections.abc import Callable, Iterable

from pairun.errors import PairunError, Problem
from pairun.job.model import Role
from pairun.kube.ports import DEFAULT_RANGE, hashed_port, rendezvous_port

TRIES = 1000


class PodUids:
    """Draws Pod uids; a Pod's ports are derived from its uid.

    Args:
        is_free: whether a port of this machine is free.
    """

    def __init__(self, is_free: Callable[[int], bool] | None = None) -> None:
        self._is_free = is_free or port_is_free
        self._taken: set[int] = set()

    def draw(self, role: Role, index: int) -> str:
        """Draw a uid for one Pod.

        Raises:
            PairunError: no uid with free ports was found.
        """
        labels = role.resources.ports.items()
        for _ in range(TRIES):
            uid = str(uuid.uuid4())
            ports = (hashed_port(uid, p, k, *DEFAULT_RANGE) for p, n in labels for k in range(n))
            mine = self._distinct(itertools.chain((rendezvous_port(uid),), ports))
            if mine is not None and all(map(self._is_free, mine)):
                self._taken |= mine
                return uid
        raise PairunError(
            Problem(
                "PR704",
                f"no free ports for {role.name}-{index}: it needs {sum(role.resources.ports.values())}",
                hint="run fewer instances with --instances",
            )
        )

    def _distinct(self, ports: Iterable[int]) -> set[int] | None:
        """The ports, or None at the first one that is taken: of many, one soon is."""
        mine: set[int] = set()
        for port in ports:
            if port in mine or port in self._taken:
                return None
            mine.add(port)
        return mine


def port_is_free(port: int) -> bool:
    """Whether both a TCP and a UDP socket can be bound to a port of this machine."""
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        with socket.socket(socket.AF_INET, kind) as s:
            try:
                s.bind(("", port))
            except OSError:
                return False
    return True
