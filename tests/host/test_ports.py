"""Ports: who holds one, asked of real sockets."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from pairun.host.context import HostContext


def free_port() -> int:
    """A port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])


def test_a_free_port_is_free_again_and_again(ctx: HostContext) -> None:
    """Asking leaves nothing behind that the next one would find."""
    port = free_port()
    assert [ctx.port_taken(port) for _ in range(3)] == [None] * 3


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
@pytest.mark.parametrize("reuse", [0, 1])
def test_a_listener_is_found_and_named(
    ctx: HostContext, family: socket.AddressFamily, reuse: int
) -> None:
    """A listener on one address only, with or without SO_REUSEADDR, of either family."""
    with socket.socket(family) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, reuse)
        try:
            listener.bind(("::1" if family == socket.AF_INET6 else "127.0.0.1", 0))
        except OSError:
            pytest.skip("this machine has no such address")
        listener.listen()
        said = ctx.port_taken(listener.getsockname()[1])
    assert said is not None
    assert said.startswith(f"a TCP socket listens on it (pid {os.getpid()}, ")


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_a_udp_socket_is_found(ctx: HostContext, family: socket.AddressFamily) -> None:
    """UDP has no listeners; whoever is bound holds the port."""
    with socket.socket(family, socket.SOCK_DGRAM) as bound:
        try:
            bound.bind(("::1" if family == socket.AF_INET6 else "127.0.0.1", 0))
        except OSError:
            pytest.skip("this machine has no such address")
        said = ctx.port_taken(bound.getsockname()[1])
    assert said == f"a UDP socket is bound to it (pid {os.getpid()}, {comm()})"


def test_a_bound_socket_that_does_not_listen_is_found(ctx: HostContext) -> None:
    """A port that someone took and does not serve yet is taken."""
    with socket.socket() as bound:
        bound.bind(("", 0))
        assert ctx.port_taken(bound.getsockname()[1]) == "in use (TCP)"


def comm() -> str:
    """This process's name as /proc has it."""
    return Path("/proc/self/comm").read_text().strip()


@pytest.mark.parametrize("reuse", [0, 1])
def test_a_finished_connection_holds_nothing(ctx: HostContext, reuse: int) -> None:
    """A port in TIME_WAIT, of a server with or without SO_REUSEADDR, is not taken."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, reuse)
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        client = socket.create_connection(("127.0.0.1", port))
        served, _ = listener.accept()
        # The side that closes first keeps the finished connection.
        served.close()
        assert client.recv(1) == b""
        client.close()
    state = [
        line.split()[3]
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]
        if line.split()[1].endswith(f":{port:04X}")
    ]
    assert state == ["06"]
    assert ctx.port_taken(port) is None
