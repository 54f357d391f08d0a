"""``python -m benchmarks.counted_init``: a ``pairun init`` that writes down what it asks a server.

The file that COUNTED_CALLS names gets a line for every request, and one for the bytes that a
connection has received until now, TLS included, and for the milliseconds of CPU that a process took
which ends; that of the barrier is the first. Once the barrier has ended, the phase goes on only
when the pipe that COUNTED_GATE names is opened for writing: what follows runs on a node of its own
in a cluster, and here it would take the processors from the barriers that are measured.
"""

from __future__ import annotations

import http.client
import os
import socket
import struct
import sys
import time
from typing import Any

from pairun.cli.main import main
from pairun.init.podplans import PodPlans

_RECEIVED = struct.Struct("=128xQ")
"""Where ``tcpi_bytes_received`` stands in Linux' ``struct tcp_info`` (uapi/linux/tcp.h)."""


def _note(line: str) -> None:
    fd = os.open(os.environ["COUNTED_CALLS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(fd, f"{line}\n".encode())
    os.close(fd)


def _note_bytes(sock: Any) -> None:
    info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _RECEIVED.size)
    _note(f"received {sock.getsockname()[1]} {_RECEIVED.unpack(info)[0]}")


def _count() -> None:
    """Write down every request of this process and those it forks."""
    # What urllib3 calls of the standard library, whose connection and response it builds on.
    putrequest, close = http.client.HTTPConnection.putrequest, http.client.HTTPConnection.close
    read1 = http.client.HTTPResponse.read1

    def counted(self: Any, method: str, url: str, *args: Any, **more: Any) -> None:
        _note(f"call {method} {url}")
        putrequest(self, method, url, *args, **more)

    def counted_read(self: Any, *args: Any) -> bytes:
        # At its end the answer lets go of the socket.
        sock = self.fp.raw._sock if self.fp else None
        data = read1(self, *args)
        if sock is not None and sock.fileno() >= 0:
            _note_bytes(sock)
        return data

    def counted_close(self: Any) -> None:
        if self.sock is not None and self.sock.fileno() >= 0:
            _note_bytes(self.sock)
        close(self)

    end = os._exit

    def counted_end(status: int) -> None:
        _note(f"spent {time.process_time() * 1000}")
        end(status)

    system: Any = os
    system._exit = counted_end
    kinds: Any = http.client
    kinds.HTTPConnection.putrequest = counted
    kinds.HTTPConnection.close = counted_close
    kinds.HTTPResponse.read1 = counted_read


def _hold() -> None:
    """Wait at the gate before what the barrier has left is read."""
    known: Any = PodPlans.cluster

    def at_gate(self: Any) -> Any:
        with open(os.environ["COUNTED_GATE"], "rb") as gate:
            gate.read()
        return known(self)

    plans: Any = PodPlans
    plans.cluster = at_gate


if __name__ == "__main__":
    _count()
    _hold()
    sys.exit(main(["init"]))
