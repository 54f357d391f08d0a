"""Pod uids for local instances, chosen so that the ports derived from them are free."""

from __future__ import annotations

import socket
import uuid
from collections.abc import Callable

from pairun.errors import PairunError, Problem
from pairun.job.model import Role
from pairun.kube.ports import DEFAULT_RANGE, PortPlan, port_annotation

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
        plan = PortPlan(port_annotation(role.resources.ports, DEFAULT_RANGE))
        for _ in range(TRIES):
            uid = str(uuid.uuid4())
            ports = [number for numbers in plan.of(uid, index).values() for number in numbers]
            mine = set(ports)
            if len(mine) == len(ports) and not mine & self._taken and all(map(self._is_free, mine)):
                self._taken |= mine
                return uid
        raise PairunError(
            Problem(
                "PR704",
                f"no free ports for {role.name}-{index}: it needs {sum(role.resources.ports.values())}",
                hint="run fewer instances with --instances",
            )
        )


def port_is_free(port: int) -> bool:
    """Whether both a TCP and a UDP socket can be bound to a port of this machine."""
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        with socket.socket(socket.AF_INET, kind) as s:
            try:
                s.bind(("", port))
            except OSError:
                return False
    return True
