"""Other hosts: their addresses, and whether they accept connections."""

from __future__ import annotations

import socket

from pairun.base.hostnames import NO_SUCH_NAME
from pairun.host.boundedcall import in_child
from pairun.module import NoSuchHost, Transient


def accepts(host: str, port: int, timeout_s: float) -> bool:
    """Whether a host accepts a TCP connection on a port within the timeout."""
    try:
        socket.create_connection((host, port), timeout_s).close()
    except OSError:
        return False
    return True


def lookup(host: str, limit_s: float) -> str:
    """The first address of a host, IPv4 before IPv6.

    Raises:
        NoSuchHost: the name does not exist.
        Transient: the name service failed.
        TimedOut: the name service did not answer in time.
    """

    def ask() -> list[str]:
        try:
            addresses = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        except socket.gaierror as e:
            return [str(e.errno), e.strerror or "the name service failed"]
        addresses.sort(key=lambda a: a[0] != socket.AF_INET)
        return [str(addresses[0][4][0])]

    answer = in_child(ask, f"looking up {host}", limit_s)
    if len(answer) == 1:
        return str(answer[0])
    if int(answer[0]) in NO_SUCH_NAME:
        raise NoSuchHost.named(host, answer[1])
    raise Transient(f"{host} cannot be resolved now: {answer[1]}")
