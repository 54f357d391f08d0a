"""Two hundred processes that meet on this machine: all but one come and wait, then the last one.

Each has its own address below 127.0.0.0/8 and its own connection; the leader is one more process.
"""

from __future__ import annotations

import os
import struct
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from benchmarks.measure import TIMES, Row, in_turns
from pairun.module import Peer
from pairun.rendezvous.gathering import gather
from pairun.rendezvous.locating import Leader
from pairun.rendezvous.roster import JobKey
from pairun.rendezvous.server import Server
from pairun.volume.door import Door

GOAL_S = 2.0
MEMBERS = 200
GOAL_CPU_MS = 50.0
KEY = b"k" * 32
JOB = JobKey("b5a4c7de-3c51-4b8f-a3f0-9a1f6e2d8c11", 0)
_RESULT = struct.Struct("dd?")
_PATIENCE_S = 120.0
_SETTLED_S = 3.0
"""Until all but the last one have connected, and wait."""


def _forked(action: Callable[..., None], *args: Any) -> int:
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        action(*args)
        code = 0
    finally:
        os._exit(code)


def _member(index: int, total: int, address: tuple[str, int], result: int) -> None:
    ip = f"127.1.{index // 250}.{1 + index % 250}"
    own = Peer("worker", index, f"uid-{index}", ip, "10.0.0.1", f"job-worker-{index}")
    deadline = time.monotonic() + _PATIENCE_S
    began = time.process_time()
    roster = gather(
        own,
        {"worker": total},
        JOB,
        key=KEY,
        locate=lambda _: Leader(address),
        deadline_s=deadline,
        log=lambda _: None,
    )
    released, cpu = time.monotonic(), time.process_time() - began
    right = roster is not None and len(roster.members) == total
    os.write(result, _RESULT.pack(released, cpu, right))


class Meeting(NamedTuple):
    """What one meeting took.

    Attributes:
        release_s: from the start of the last member to the last release.
        cpu_ms: of each member, from its start to its release.
        complete: whether every member found every other one.
    """

    release_s: float
    cpu_ms: list[float]
    complete: bool


def rows() -> Iterator[Row]:
    """The release of two hundred barriers beside waking as many processes."""
    cpu_ms: list[float] = []

    def release_ms() -> float:
        meeting = meet(MEMBERS, _SETTLED_S)
        if not meeting.complete:
            raise RuntimeError("a member did not find all others")
        cpu_ms.append(max(meeting.cpu_ms))
        return meeting.release_s * 1000

    released, woken = in_turns(TIMES, release_ms, lambda: _waking_ms(MEMBERS))
    yield Row(
        f"release of {MEMBERS} barriers", "ms", released, GOAL_S * 1000,
        f"waking {MEMBERS} processes", woken, f"a member takes {min(cpu_ms):.0f} ms of CPU at most",
        broken=min(cpu_ms) > GOAL_CPU_MS,
    )  # fmt: skip


def _waking_ms(count: int) -> float:
    """The time until so many processes, which wait for the end of a pipe, have ended."""
    waiting, held = os.pipe()

    def wait() -> None:
        os.close(held)
        os.read(waiting, 1)

    pids = [_forked(wait) for _ in range(count)]
    os.close(waiting)
    began = time.monotonic()
    os.close(held)
    for pid in pids:
        os.waitpid(pid, 0)
    return (time.monotonic() - began) * 1000


def meet(total: int, wait_s: float) -> Meeting:
    """Let processes meet.

    Args:
        total: how many.
        wait_s: how long all but the last one wait before it starts, in seconds.
    """
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(f"{folder}/runtime.d")
        server = Server(
            {"worker": total},
            JOB,
            key=KEY,
            host="127.0.0.1",
            port=0,
            log=lambda _: None,
            volume=Door(folder),
        )
        stop, ending = os.pipe()
        address = server.address

        def lead() -> None:
            os.close(ending)
            server.serve_forever(stop)

        leader = _forked(lead)
        server.close()
        os.close(stop)
        results, result = os.pipe()
        pids = [_forked(_member, n, total, address, result) for n in range(total - 1)]
        time.sleep(wait_s)
        last_ready = time.monotonic()
        pids.append(_forked(_member, total - 1, total, address, result))
        for pid in pids:
            os.waitpid(pid, 0)
        os.close(result)
        os.close(ending)
        os.waitpid(leader, 0)
        with open(results, "rb") as file:
            found = list(_RESULT.iter_unpack(file.read()))
    release_s = max(row[0] for row in found) - last_ready
    cpu_ms = [row[1] * 1000 for row in found]
    complete = len(found) == total and all(row[2] for row in found)
    return Meeting(release_s, cpu_ms, complete)
