"""A job's leader in a process of its own, and members that meet there."""

from __future__ import annotations

import pathlib
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from pairun.base.paths import STATE_FILE
from pairun.module import Peer
from pairun.rendezvous.facts import Facts
from pairun.rendezvous.gathering import Locate, gather
from pairun.rendezvous.locating import Leader
from pairun.rendezvous.roster import Address, JobKey, Roster
from pairun.rendezvous.server import Server, ServerProcess
from pairun.volume.door import Door

KEY = b"k" * 32
JOB = JobKey("uid-of-the-job", 3)
WAIT_S = 30.0


def member(index: int, *, uid: str | None = None) -> Peer:
    """A worker."""
    ip = f"127.0.{1 + index // 250}.{1 + index % 250}"
    return Peer("worker", index, uid or f"uid-{index}", ip, "10.0.0.1", f"job-worker-{index}")


class Waiting:
    """A call in a thread, and what came of it."""

    def __init__(self, call: Callable[[], object]) -> None:
        self._result: object = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(call,), daemon=True)
        self._thread.start()

    def _run(self, call: Callable[[], object]) -> None:
        try:
            self._result = call()
        except BaseException as e:  # noqa: BLE001 - raised again where it is awaited
            self._error = e

    def result(self) -> object:
        """Wait for it; raises what it raised."""
        self._thread.join(WAIT_S)
        assert not self._thread.is_alive()
        if self._error:
            raise self._error
        return self._result


class Gathering:
    """A job of one role.

    Args:
        count: of its members.
        folder: for the leader's state.
    """

    def __init__(self, count: int, folder: pathlib.Path) -> None:
        self.roles = {"worker": count}
        self.state = folder / "runtime.d" / STATE_FILE
        self.state.parent.mkdir(exist_ok=True)
        self.lines: list[str] = []
        self.address: Address | None = None
        self._child: ServerProcess | None = None

    def lead(
        self,
        *,
        key: bytes | None = KEY,
        job: JobKey = JOB,
        port: int = 0,
        state: bool = True,
        is_last: bool = False,
    ) -> Address:
        """Start the leader's process."""
        server = Server(
            self.roles,
            job,
            key=key,
            host="127.0.0.1",
            port=port,
            log=self.lines.append,
            volume=Door(str(self.state.parent.parent)) if state else None,
        )
        self._child = ServerProcess(server, is_last=is_last)
        self.address = self._child.address
        return self.address

    def stop(self, *, stay: bool = False) -> None:
        """End the leader's process; it keeps its state."""
        if self._child:
            self._child.stop(stay=stay)
            self._child = None

    def locate(self, timeout_s: float) -> Leader | None:
        """Where the leader is."""
        return self.address and Leader(self.address)

    def join(
        self,
        index: int,
        *,
        key: bytes | None = KEY,
        job: JobKey = JOB,
        uid: str | None = None,
        locate: Locate | None = None,
        within_s: float = WAIT_S,
        log: Callable[[str], None] | None = None,
        on_turn: Callable[[bool], None] = lambda _: None,
        leave_fd: int | None = None,
    ) -> Roster | None:
        """Gather as one member."""
        return gather(
            member(index, uid=uid),
            self.roles,
            job,
            key=key,
            locate=locate or self.locate,
            deadline_s=time.monotonic() + within_s,
            log=log or self.lines.append,
            on_turn=on_turn,
            leave_fd=leave_fd,
        )

    def facts(self, *, job: JobKey = JOB, key: bytes | None = KEY) -> Facts:
        """The leader's board."""
        assert self.address
        return Facts(self.address, job, key)


@pytest.fixture
def gathering(tmp_path: pathlib.Path) -> Iterator[Callable[[int], Gathering]]:
    """Make a job of so many members; its leader ends with the test."""
    made: list[Gathering] = []

    def make(count: int) -> Gathering:
        made.append(Gathering(count, tmp_path))
        return made[-1]

    yield make
    for each in made:
        each.stop()


@pytest.fixture
def background() -> Callable[[Callable[[], object]], Waiting]:
    """Call in the background."""
    return Waiting
