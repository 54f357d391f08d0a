"""The job's first instance goes on serving the others beside the user's command."""

from __future__ import annotations

import base64
import contextlib
import os
import pathlib
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from pairun.base.paths import KEY_FILE, STATE_FILE
from pairun.module import Peer
from pairun.rendezvous.facts import Facts
from pairun.rendezvous.gathering import gather
from pairun.rendezvous.locating import Leader
from pairun.rendezvous.peers import MemberPlace, write_place
from pairun.rendezvous.roster import Address, Gang, JobKey
from pairun.rendezvous.server import Server, ServerProcess
from pairun.volume.door import Door

KEY = b"k" * 32
JOB = JobKey("uid-of-the-job", 0)
GANG = Gang((("chief", 1), ("worker", 1)))
WAIT_S = 20.0


class Init:
    """What init leaves on the volume: where the instances meet, and the job's key.

    Args:
        volume: the shared volume.
        address: where the first instance is to serve.
    """

    def __init__(self, volume: Any, address: Address) -> None:
        self.root = pathlib.Path(volume.root)
        self.address = address
        self.facts = Facts(self.address, JOB, KEY)

    def leave(self, *, rank: int = 0, key: bytes | None = KEY) -> None:
        """Write it."""
        write_place(str(self.root), MemberPlace(self.address, JOB, rank, GANG))
        if key:
            path = self.root / KEY_FILE
            path.parent.mkdir()
            path.write_bytes(base64.b64encode(key))

    @contextlib.contextmanager
    def serving(self) -> Iterator[None]:
        """What init serves; it keeps its state at the end."""
        server = Server(dict(GANG.roles), JOB, key=KEY, host=self.address[0],
                        port=self.address[1], log=print, volume=Door(str(self.root)))  # fmt: skip
        child = ServerProcess(server)
        yield
        child.stop()

    def join(self, rank: int, uid: str) -> list[str]:
        """Gather as a member; the UIDs of all."""
        role, index = GANG.place(rank)
        own = Peer(role, index, uid, "127.0.0.1", "127.0.0.1", f"job-{role}-{index}")
        roster = gather(
            own, dict(GANG.roles), JOB, key=KEY, locate=lambda _: Leader(self.address),
            deadline_s=time.monotonic() + WAIT_S, log=print,
        )  # fmt: skip
        assert roster is not None
        return [m.pod_uid for m in roster.members]


@pytest.fixture
def init(volume: Any) -> Iterator[Init]:
    """Init of an instance."""
    # The port is kept from others; the leader can listen beside it.
    with socket.socket() as port:
        port.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        port.bind(("127.0.0.1", 0))
        yield Init(volume, port.getsockname())


def children(running: Any) -> list[str]:
    """The numbers of the phase's children."""
    path = pathlib.Path(f"/proc/{running.pid}/task/{running.pid}/children")
    return path.read_text().split()


def test_it_serves_while_the_command_runs(volume: Any, start: Any, init: Init) -> None:
    """Others share facts and wait at barriers with it, and nobody listens after its end."""
    init.leave()
    volume.command("echo up; exec sleep 1000")
    running = start()
    running.line("up")
    assert init.facts.put("x", 1, WAIT_S) == 1
    init.facts.arrive("b", "worker-0", 1, WAIT_S)
    os.kill(running.pid, 15)
    assert running.end() == 143
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(init.address, WAIT_S)


def test_it_goes_on_where_init_ended(volume: Any, start: Any, init: Init) -> None:
    """It knows what init was told: facts, open barriers, and who the others are."""
    init.leave()
    with init.serving():
        init.facts.put("x", "told in init", WAIT_S)
        init.facts.arrive("b", "worker-0", 1, WAIT_S)
    volume.command("echo up; read -r line < $FIFO")
    fifo = volume.root / "fifo"
    os.mkfifo(fifo)
    running = start(FIFO=str(fifo))
    running.line("up")
    assert init.facts.get("x", WAIT_S) == "told in init"
    init.facts.arrive("b", "chief-0", 1, WAIT_S)
    fifo.write_text("go\n")
    assert running.end() == 0


def test_a_late_instance_finds_it(volume: Any, start: Any, init: Init) -> None:
    """A new Pod in place of one that had gathered has the roster at once, with itself in it."""
    init.leave()
    state = volume.files / STATE_FILE
    with init.serving(), ThreadPoolExecutor() as threads:
        chief = threads.submit(init.join, 0, "chief")
        assert init.join(1, "first") == chief.result() == ["chief", "first"]
    assert state.exists()
    volume.command("echo up; exec sleep 1000")
    running = start()
    running.line("up")
    assert init.join(1, "second") == ["chief", "second"]
    os.kill(running.pid, 15)
    assert running.end() == 143


@pytest.mark.parametrize(
    "left",
    [{"rank": 1}, {"key": None}, None],
    ids=["another leads", "no key", "alone"],
)
def test_no_process_without_need(
    volume: Any, start: Any, init: Init, left: dict[str, Any] | None
) -> None:
    """Where this instance does not lead, or nobody would believe it, nothing runs beside the command."""
    if left is not None:
        init.leave(**left)
    volume.command("echo up; exec sleep 1000")
    running = start()
    running.line("up")
    assert len(children(running)) == 1
    os.kill(running.pid, 15)
    assert running.end() == 143


def test_a_port_that_is_taken(volume: Any, start: Any, init: Init) -> None:
    """The command runs all the same, and a line says that the others are not served."""
    init.leave()
    with socket.create_server(init.address):
        volume.command("read -r line < $FIFO; exit 5")
        fifo = volume.root / "fifo"
        os.mkfifo(fifo)
        running = start(FIFO=str(fifo))
        line = running.line("error[PR777]")
        fifo.write_text("go\n")
        assert running.end() == 5
    assert str(init.address[1]) in line
