"""Other hosts: their addresses, and whether they accept connections."""

from __future__ import annotations

import socket

from pairun.module import Failure, NoSuchHost, Transient
from pairun.net.boundedcall import in_child

_NO_SUCH_NAME = {getattr(socket, n, None) for n in ("EAI_NONAME", "EAI_NODATA")}
"""The name does not exist or has no address; ``EAI_AGAIN`` means that no server answered
(getaddrinfo(3))."""


def accepts(host: str, port: int, timeout_s: float) -> bool:
    """Whether a host accepts a TCP connection on a port within the timeout."""

    def connect() -> None:
        socket.create_connection((host, port), timeout_s).close()

    try:
        in_child(connect, f"connecting to {host}", timeout_s)
    except (Failure, OSError):
        return False
    return True


def lookup(host: str, limit_s: float) -> str:
    """The first address of a host, IPv4 before IPv6.

    Raises:
        NoSuchHost: the name does not exist.
        Transient: the name service failed.
        TimedOut: the name service did not answer in time.
    """

    def ask() -> str:
        addresses = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        return str(min(addresses, key=lambda a: a[0] != socket.AF_INET)[4][0])

    try:
        return str(in_child(ask, f"looking up {host}", limit_s))
    except socket.gaierror as e:
        raise name_failure(e, host) from None


def name_failure(error: socket.gaierror, where: str) -> Failure:
    """The failure of a name lookup.

    Args:
        error: the resolver's error.
        where: the server's name for people.
    """
    why = error.strerror or "the name service failed"
    if error.errno in _NO_SUCH_NAME:
        return NoSuchHost.named(where, why)
    return Transient(f"the name of {where} cannot be resolved: {why}", fault="platform")
