"""The module port_check, with real sockets."""

from __future__ import annotations

import socket
import time
from typing import TYPE_CHECKING

from pairun.module import Conflict, Skip

if TYPE_CHECKING:
    from tests.modules.conftest import Harness


def free_port() -> int:
    """A port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])


def test_free_ports_are_ok(harness: Harness) -> None:
    """Ports that nobody has are no failure, twice."""
    args = {"ports": {"http": [free_port()], "ssh": []}}
    for _ in range(2):
        outcome = harness.run("port_check", args)
        assert outcome.failure is None
        assert outcome.result is not None


def test_no_ports_is_a_skip(harness: Harness) -> None:
    """A task without ports has nothing to check."""
    nothing: list[dict[str, list[int]]] = [{}, {"http": []}]
    for ports in nothing:
        assert isinstance(harness.run("port_check", {"ports": ports}).skip, Skip)


def test_a_listener_is_a_conflict_of_the_platform(harness: Harness) -> None:
    """The label, the port and what holds it are named."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        failure = harness.run("port_check", {"ports": {"http": [port]}}).failure
    assert isinstance(failure, Conflict)
    assert failure.fault == "platform"
    assert f"port {port} ('http'): a TCP socket listens on it (pid " in failure.message


def test_a_udp_socket_is_a_conflict(harness: Harness) -> None:
    """UDP counts too."""
    with socket.socket(type=socket.SOCK_DGRAM) as bound:
        bound.bind(("", 0))
        port = bound.getsockname()[1]
        failure = harness.run("port_check", {"ports": {"p": [port]}}).failure
    assert isinstance(failure, Conflict)
    assert "UDP" in failure.message


def test_a_duplicate_names_both_labels(harness: Harness) -> None:
    """Two labels with one number conflict, whoever holds the port."""
    port = free_port()
    failure = harness.run("port_check", {"ports": {"http": [port], "ssh": [1, port]}}).failure
    assert isinstance(failure, Conflict)
    assert failure.fault == "platform"
    assert f"port {port} was given twice, as 'http' and as 'ssh'" in failure.message


def test_many_taken_ports_make_a_bounded_message(harness: Harness) -> None:
    """The first few are named, the others counted, and it does not take long."""
    listeners = [socket.create_server(("", 0)) for _ in range(7)]
    try:
        ports = [listener.getsockname()[1] for listener in listeners]
        start = time.monotonic()
        failure = harness.run("port_check", {"ports": {"p": ports}}).failure
    finally:
        for listener in listeners:
            listener.close()
    assert time.monotonic() - start < 10
    assert failure is not None
    assert "; and 2 more" in failure.message


def test_what_is_no_port_is_refused(harness: Harness) -> None:
    """Numbers outside of 1 to 65535 are an argument problem."""
    problems = harness.problems("port_check", {"ports": {"a": [0, 70000]}})
    assert len(problems) == 2
