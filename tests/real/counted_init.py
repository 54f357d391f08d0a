"""A ``pairun init`` that writes to the file COUNTED_CALLS what it asks the API server, a line for each request.

After its barrier, it waits until the pipe COUNTED_GATE is opened for writing.
"""

from __future__ import annotations

import http.client
import os
import sys
from typing import Any

from pairun.cli.main import main
from pairun.init.podplans import PodPlans


def _note(line: str) -> None:
    fd = os.open(os.environ["COUNTED_CALLS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(fd, f"{line}\n".encode())
    os.close(fd)


def _count() -> None:
    """Write down every request of this process and those it forks."""
    # urllib3's connection builds on this one.
    putrequest = http.client.HTTPConnection.putrequest

    def counted(self: Any, method: str, url: str, *args: Any, **more: Any) -> None:
        _note(f"call {method} {url}")
        putrequest(self, method, url, *args, **more)

    connection: Any = http.client.HTTPConnection
    connection.putrequest = counted


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
