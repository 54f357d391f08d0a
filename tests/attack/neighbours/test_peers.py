"""Peers that have the job's key and lie: by the words of the protocol, with any fields.

Forged, replayed and oversized messages are in rendezvous/test_wire.py; single broken messages in
rendezvous/test_gathering.py.
"""

from __future__ import annotations

import contextlib
import random
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pairun.rendezvous.refusals import LeaderRefusal, NotInTime
from pairun.rendezvous.wire import BadPeer, Channel, pack
from tests.rendezvous.conftest import JOB, KEY, WAIT_S, Gathering

Make = Callable[[int], Gathering]

WORDS = ("join", "have", "put", "get", "arrive", "all", "go", "stay", "missing", "later", "look", "no", "bye", "is", "open", "")  # fmt: skip
FIELDS = ("m", "at", "lost", "kids", "k", "v", "who", "of", "replace", "missing", "s", "why", "have", "job", "attempt")  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, 0, -1, 1, 2**63, 1.5, float("inf"), "", "x", "y" * 5000, "127.0.0.1", [], {}, [0], [[]],
    [0, "uid-0", "127.0.0.1", "10.0.0.1", "n"], [1, "", "", "", ""], [2**40, "", "", "", ""], [["worker", 0]],
    ["127.0.0.1", 1], ["169.254.169.254", 80], ["::1", 70_000], {"some": [0, 1, -1, "x"], "count": 9},
    {"some": None}, {"t": "x"}, [None] * 50,
)  # fmt: skip


def lie(rng: random.Random) -> dict[str, Any]:
    """A message with a word of the protocol, and fields as they come."""
    fields = {rng.choice(FIELDS): rng.choice(VALUES) for _ in range(rng.randint(0, 4))}
    return {"job": JOB.uid, "attempt": JOB.attempt, **fields, "t": rng.choice(WORDS)}


def say_lies(sock: socket.socket, channel: Channel, rng: random.Random) -> None:
    """Say some lies over a connection, until the other side closes it."""
    sock.settimeout(WAIT_S)
    sock.sendall(channel.greeting)
    while not channel.is_ready:
        if not (data := sock.recv(4096)):
            return
        channel.feed(data)
    for _ in range(3):
        sock.sendall(channel.frame(pack(lie(rng))))
    sock.shutdown(socket.SHUT_WR)
    while sock.recv(65536):
        pass


@pytest.mark.parametrize("seed", range(3))
def test_a_member_that_lies(gathering: Make, seed: int) -> None:
    """The leader stays alive, and the honest members get one and the same roster."""
    rng = random.Random(seed)
    job = gathering(2)
    address = job.lead()
    for _ in range(60):
        with socket.create_connection(address) as sock, contextlib.suppress(OSError, BadPeer):
            say_lies(sock, Channel(KEY, serves=False), rng)
    rosters: list[Any] = []
    threads = [threading.Thread(target=lambda n=n: rosters.append(job.join(n))) for n in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(2 * WAIT_S)
    assert len(rosters) == 2
    assert rosters[0] == rosters[1]
    assert not [line for line in job.lines if "Traceback" in line]


@pytest.fixture
def lying_leader() -> Iterator[tuple[str, int]]:
    """A server with the job's key that answers whatever comes to its mind."""
    rng = random.Random(7)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    peer, _ = server.accept()
                    with peer, contextlib.suppress(OSError, BadPeer):
                        say_lies(peer, Channel(KEY, serves=True), rng)

        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()
        server.shutdown(socket.SHUT_RDWR)


def test_a_leader_that_lies(gathering: Make, lying_leader: tuple[str, int]) -> None:
    """A member ends with an error that the barrier knows, within its time, or with a whole roster."""
    job = gathering(2)
    job.address = lying_leader
    with contextlib.suppress(NotInTime, LeaderRefusal):
        assert job.join(0, within_s=0.8) is None
