"""Members meet at their leader over real sockets, whatever comes between."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pairun.errors import PairunError
from pairun.module import Peer
from pairun.rendezvous.locating import Leader
from pairun.rendezvous.peers import MemberPlace, read_place, write_place
from pairun.rendezvous.refusals import LeaderRefusal, NotInTime, PortTaken
from pairun.rendezvous.roster import Address, Gang, JobKey, Roster
from pairun.rendezvous.server import Server
from pairun.rendezvous.wire import Channel, Packed, pack
from tests.rendezvous.conftest import JOB, KEY, WAIT_S, Gathering, Waiting, member

Make = Callable[[int], Gathering]
Background = Callable[[Callable[[], object]], Waiting]


def expected(count: int, **uids: str) -> Roster:
    """What all should hold; ``w0="x"`` for another UID of worker 0."""
    return Roster(tuple(member(n, uid=uids.get(f"w{n}")) for n in range(count)))


@pytest.mark.parametrize("count", [1, 3, 150])
def test_all_members_hold_the_same_roster(
    count: int, gathering: Make, background: Background
) -> None:
    """Few meet at the leader; of many, most meet at a member below it."""
    job = gathering(count)
    job.lead()
    calls = [background(lambda n=n: job.join(n)) for n in range(count)]  # type: ignore[misc]
    for call in calls:
        assert call.result() == expected(count)


def test_a_leader_that_comes_last_is_found(gathering: Make, background: Background) -> None:
    """Members wait for it without harm, and keep looking."""
    job = gathering(3)
    calls = [background(lambda n=n: job.join(n)) for n in (1, 2)]  # type: ignore[misc]
    job.lead()
    assert job.join(0) == expected(3)
    assert [c.result() for c in calls] == [expected(3)] * 2


@pytest.mark.parametrize("key", [KEY, None])
def test_a_member_that_leaves_is_counted(
    key: bytes | None, gathering: Make, background: Background
) -> None:
    """Who has learned elsewhere what it waited for holds nobody up when it goes."""
    job = gathering(3)
    job.lead(key=key)
    read, write = os.pipe()
    is_in = threading.Event()

    def on_turn(connected: bool) -> None:
        if connected:
            is_in.set()

    goes = background(lambda: job.join(1, key=key, on_turn=on_turn, leave_fd=read))
    assert is_in.wait(WAIT_S)
    os.write(write, b".")
    assert goes.result() is None
    os.close(read)
    os.close(write)
    waits = background(lambda: job.join(2, key=key))
    found = expected(3) if key else None
    assert job.join(0, key=key) == found
    assert waits.result() == found


def test_who_is_missing_is_told(gathering: Make) -> None:
    """By name, in the error and in the log."""
    job = gathering(14)
    job.lead()
    with pytest.raises(NotInTime) as e:
        job.join(3, within_s=0.5)
    assert [p.id for p in e.value.problems] == ["PR775"]
    assert "13 of 14 members did not arrive in time: worker 0, worker 1, worker 2, worker 4" in str(
        e
    )
    assert str(e.value).endswith("worker 10 and 3 more")
    assert e.value.missing_count == 13
    assert e.value.missing[:2] == (("worker", 0), ("worker", 1))
    assert any("1 of 14 are present; missing: worker 0" in line for line in job.lines)


def test_a_leader_that_was_not_reached_is_told(gathering: Make) -> None:
    """Nobody is blamed who is not known to be missing."""
    with pytest.raises(NotInTime, match="the leader was not reached"):
        gathering(2).join(1, within_s=0.2)


def test_what_the_search_raises_ends_the_gathering(gathering: Make) -> None:
    """A missing right is for the caller to deal with."""

    def locate(timeout_s: float) -> Leader | None:
        raise LookupError("no right")

    with pytest.raises(LookupError):
        gathering(2).join(1, locate=locate)


def test_a_leader_with_another_key_is_none(gathering: Make) -> None:
    """It is turned away, said once, and the member waits for the right one until its deadline."""
    job = gathering(1)
    job.lead(key=b"x" * 32)
    with pytest.raises(NotInTime):
        job.join(0, within_s=0.5)
    assert sum("does not have the job's key" in line for line in job.lines) <= 1


def test_an_impostor_that_says_garbage_holds_nobody_up(
    gathering: Make, background: Background
) -> None:
    """What answers at the leader's address without being it is left, and the leader found later."""
    job = gathering(2)
    impostor = socket.create_server(("127.0.0.1", 0))
    job.address = impostor.getsockname()

    def lie() -> None:
        peer, _ = impostor.accept()
        impostor.close()
        with peer, contextlib.suppress(OSError):
            peer.sendall(b"PRZ1" + b"n" * 16 + b"\0" * 400)

    waits = background(lambda: job.join(1))
    background(lie).result()
    job.lead(port=job.address[1])
    assert job.join(0) == expected(2)
    assert waits.result() == expected(2)
    assert any(line.startswith("rejected a peer") for line in job.lines)


def test_peers_that_send_garbage_or_nothing_block_nobody(
    gathering: Make, background: Background
) -> None:
    """Too much, no protocol, a wrong key, silence: all at once, and members meet."""
    job = gathering(3)
    address = job.lead()
    greeting = Channel(KEY, serves=False).greeting
    wrong = [b"GET / HTTP/1.0\r\n\r\n", greeting + b"\xff" * 99, greeting, b"", b"PRZ0" + b"0" * 16]
    open_ones = [socket.create_connection(address) for _ in wrong]
    for peer, data in zip(open_ones, wrong, strict=True):
        peer.sendall(data)
    calls = [background(lambda n=n: job.join(n)) for n in range(3)]  # type: ignore[misc]
    assert [c.result() for c in calls] == [expected(3)] * 3
    for peer in open_ones[:2]:
        peer.settimeout(WAIT_S)
        with contextlib.suppress(ConnectionResetError):
            while peer.recv(1000):
                pass
    for peer in open_ones:
        peer.close()


OPEN: list[socket.socket] = []


@pytest.fixture(autouse=True)
def _close() -> Iterator[None]:
    """Close what the speakers of a test left open."""
    yield
    while OPEN:
        OPEN.pop().close()


class Speaker:
    """A peer that has the key and says what it likes."""

    def __init__(self, address: Address, key: bytes | None = KEY) -> None:
        self.channel = Channel(key, serves=False)
        self.sock = socket.create_connection(address)
        OPEN.append(self.sock)
        self.sock.settimeout(WAIT_S)
        self.sock.sendall(self.channel.greeting)
        while not self.channel.is_ready:
            self.channel.feed(self.sock.recv(4096))

    def say(self, message: dict[str, Any]) -> None:
        """Send, for this job unless the message says otherwise."""
        said = {"job": JOB.uid, "attempt": JOB.attempt, **message}
        self.sock.sendall(self.channel.frame(pack(said)))

    def hear(self) -> dict[str, Any] | None:
        """The next message; None when the connection ends."""
        found: list[Packed] = []
        while not found:
            with contextlib.suppress(ConnectionResetError):
                data = self.sock.recv(65536)
            if not data:
                return None
            found = self.channel.feed(data)
        return found[0].message


@pytest.mark.parametrize(
    "message",
    [
        {"t": "join"},
        {"t": "join", "m": [99, "", "", "", ""]},
        {"t": "join", "m": [0, "", "", "", "x" * 999]},
        {"t": "join", "m": [True, "", "", "", ""]},
        {"t": "join", "m": [0, "", "a-name", "", ""]},
        {"t": "join", "m": [0, "", "", "", ""], "at": ["no address", 1]},
        {"t": "join", "m": [0, "", "", "", ""], "at": ["::1", 70_000]},
        {"t": "have", "m": 7},
        {"t": "put", "v": 1},
        {"t": "get", "k": "x" * 999},
        {"t": "arrive", "k": "x", "who": 1, "of": 1},
        {"t": "arrive", "k": "x", "who": "a", "of": 0},
        {"t": "sing"},
    ],
    ids=str,
)
def test_nonsense_ends_the_connection_and_nothing_else(
    message: dict[str, Any], gathering: Make
) -> None:
    """A peer with the key that breaks the protocol is closed; the leader goes on."""
    job = gathering(1)
    speaker = Speaker(job.lead())
    speaker.say(message)
    assert speaker.hear() is None
    assert job.join(0) == expected(1)


def test_an_older_attempt_is_refused(gathering: Make) -> None:
    """It can never become right, so it ends at once and says why."""
    job = gathering(1)
    job.lead()
    with pytest.raises(LeaderRefusal, match="this Pod belongs to an older attempt") as e:
        job.join(0, job=JobKey(JOB.uid, JOB.attempt - 1))
    assert [p.id for p in e.value.problems] == ["PR776"]
    with pytest.raises(LeaderRefusal, match="another job"):
        job.join(0, job=JobKey("other", JOB.attempt))


@pytest.mark.slow
def test_a_newer_attempt_waits_for_its_leader(gathering: Make, background: Background) -> None:
    """The old leader lets it not in; the new one does, wherever it is."""
    job = gathering(1)
    job.lead(state=False)
    newer = JobKey(JOB.uid, JOB.attempt + 1)
    with pytest.raises(NotInTime):
        job.join(0, job=newer, within_s=0.3)
    refused = threading.Event()
    waits = background(lambda: job.join(0, job=newer, log=lambda _: refused.set()))
    assert refused.wait(WAIT_S)
    job.stop()
    job.lead(job=newer, state=False)
    assert waits.result() == expected(1)


def once(met: threading.Barrier) -> Callable[[str], None]:
    """A log whose first line, which a member writes when it is let in, comes to a barrier."""
    waits = [met.wait]

    def log(line: str) -> None:
        if waits:
            waits.pop()(WAIT_S)

    return log


def test_a_restarted_member_takes_its_old_ones_place(
    gathering: Make, background: Background
) -> None:
    """Before the gathering is complete, and after it."""
    job = gathering(2)
    job.lead()
    with pytest.raises(NotInTime):
        job.join(1, uid="first", within_s=0.3)
    met = threading.Barrier(2)
    waits = background(lambda: job.join(0, log=once(met)))
    met.wait(WAIT_S)
    assert job.join(1, uid="second") == expected(2, w1="second")
    assert waits.result() == expected(2, w1="second")
    assert job.join(1, uid="third") == expected(2, w1="third")


def test_the_leader_comes_back_on_another_port(gathering: Make, background: Background) -> None:
    """Its Pod was replaced and knows nothing: members find it and join again."""
    job = gathering(3)
    job.lead(state=False)
    joined = threading.Barrier(3)
    calls = [
        background(lambda n=n: job.join(n, log=once(joined)))  # type: ignore[misc]
        for n in (1, 2)
    ]
    joined.wait(WAIT_S)
    first = job.address
    job.stop()
    assert job.lead(state=False) != first
    assert job.join(0) == expected(3)
    assert [c.result() for c in calls] == [expected(3)] * 2


MEMBER = """
import sys, time
from pairun.rendezvous.gathering import gather
from pairun.rendezvous.locating import Leader
from pairun.module import Peer
from pairun.rendezvous.roster import JobKey
index, count, port = map(int, sys.argv[1:])
ip = f"127.0.{1 + index // 250}.{1 + index % 250}"
own = Peer("worker", index, f"uid-{index}", ip, "10.0.0.1", f"job-worker-{index}")
gather(own, {"worker": count}, JobKey("uid-of-the-job", 3), key=b"k" * 32,
       locate=lambda _: Leader(("127.0.0.1", port)), deadline_s=time.monotonic() + 60,
       log=lambda line: print(line, flush=True))
"""


def test_members_whose_parent_dies_go_back_to_the_leader(
    gathering: Make, background: Background
) -> None:
    """All that were parents are killed while everyone waits; who was below them still meets."""
    count, below = 80, 6
    job = gathering(count)
    _, port = job.lead()
    parents = [
        subprocess.Popen(
            [sys.executable, "-c", MEMBER, str(n), str(count), str(port)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for n in range(2)
    ]
    for parent in parents:
        assert parent.stdout is not None
        assert "are present" in parent.stdout.readline()
    # The first to come are parents; these hold their places without being able to.
    holders = [Speaker((job.address or ("", 0))[:2]) for _ in range(62)]
    for n, holder in enumerate(holders, 2):
        holder.say({"t": "join", "m": job_row(n)})
        assert (holder.hear() or {})["t"] == "stay"
    waits = [background(lambda n=n: job.join(n)) for n in range(64, 64 + below)]  # type: ignore[misc]
    seen = Speaker((job.address or ("", 0))[:2])
    seen.say({"t": "join", "m": job_row(70)})
    assert (seen.hear() or {})["t"] == "go"
    for parent in parents:
        parent.kill()
        parent.communicate()
    others = [*range(2), *range(70, count)]
    rest = [background(lambda n=n: job.join(n)) for n in others]  # type: ignore[misc]
    for call in (*waits, *rest):
        assert call.result() == expected(count)


def job_row(index: int) -> list[Any]:
    """A worker as it goes over the wire."""
    return Gang((("worker", index + 1),)).row(member(index))


def test_a_leader_goes_on_where_its_last_process_ended(gathering: Make) -> None:
    """Roster, facts and open barriers are kept in a file; members need not be there again.

    PID 1 may be another user, who reads it.
    """
    job = gathering(1)
    job.lead()
    assert job.join(0) == expected(1)
    job.facts().put("verdict", {"ok": True}, WAIT_S)
    job.facts().arrive("done", "worker 0", 1, WAIT_S)
    job.stop()
    assert os.stat(job.state).st_mode & 0o777 == 0o644
    job.lead()
    assert job.facts().get("verdict", WAIT_S) == {"ok": True}
    job.facts().arrive("done", "worker 9", 1, WAIT_S)
    kept = json.loads(job.state.read_text())
    assert kept["rows"] == [job_row(0)]


@pytest.mark.parametrize("content", ["", "{}", "[1]", '{"schema": 1}', "\0\0"])
def test_a_state_that_cannot_be_read_is_none(content: str, gathering: Make) -> None:
    """The leader starts with an empty state and reports it."""
    job = gathering(1)
    job.state.write_text(content)
    job.lead()
    assert job.join(0) == expected(1)
    assert any("starting with an empty one" in line for line in job.lines)


def test_the_state_of_another_attempt_is_left(gathering: Make, tmp_path: pathlib.Path) -> None:
    """A new attempt has no old roster."""
    job = gathering(1)
    job.lead()
    job.facts().put("a", 1, WAIT_S)
    job.stop()
    newer = JobKey(JOB.uid, JOB.attempt + 1)
    job.lead(job=newer)
    with pytest.raises(NotInTime):
        job.facts(job=newer).get("a", 0.3)


def test_without_a_key_there_is_a_hint_and_no_roster(
    gathering: Make, background: Background
) -> None:
    """The leader tells when all say that they are present; no value is taken from anybody."""
    job = gathering(2)
    address = job.lead(key=None)
    waits = background(lambda: job.join(1, key=None))
    assert job.join(0, key=None) is None
    assert waits.result() is None
    speaker = Speaker(address, key=None)
    speaker.say({"t": "put", "k": "a", "v": 1})
    assert speaker.hear() is None
    job.stop()
    assert "uid-1" not in job.state.read_text()


def test_a_port_that_is_taken_is_said(gathering: Make) -> None:
    """Whoever leads hears it at once."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(PortTaken, match=f"port {port}: Address already in use") as e:
            Server({"w": 1}, JOB, key=KEY, host="127.0.0.1", port=port, log=print)
    assert [p.id for p in e.value.problems] == ["PR777"]


def test_a_leader_in_a_child_ends_with_its_parent() -> None:
    """However the parent ends, nobody is left behind to hold the port."""
    code = (
        "import os, time\n"
        "from pairun.rendezvous.server import Server, ServerProcess\n"
        "from pairun.rendezvous.roster import JobKey\n"
        "s = Server({'w': 1}, JobKey('u', 0), key=None, host='127.0.0.1', port=0, log=print)\n"
        "c = ServerProcess(s)\n"
        "print(c.pid, c.address[1], flush=True)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    port = int(done.stdout.split()[1])
    end = time.monotonic() + WAIT_S
    while True:
        try:
            Server({"w": 1}, JOB, key=None, host="127.0.0.1", port=port, log=print).close()
            return
        except PairunError:
            assert time.monotonic() < end
            time.sleep(0.01)


def test_the_note_for_the_users_container(tmp_path: pathlib.Path) -> None:
    """What was written is read; what is broken is no note."""
    place = MemberPlace(("10.0.0.1", 16_000), JOB, 2, Gang((("ps", 1), ("worker", 4))))
    assert read_place(str(tmp_path)) is None
    write_place(str(tmp_path), place)
    assert read_place(str(tmp_path)) == place
    for broken in ("", "{}", '{"leader": ["x", 1]}'):
        (tmp_path / "rendezvous.json").write_text(broken)
        assert read_place(str(tmp_path)) is None


def test_ranks_and_places_are_inverse() -> None:
    """Rank 0 is the first of the first role; what is not in the job has no rank."""
    gang = Gang.of({"ps": 2, "worker": 3})
    assert [gang.rank(*gang.place(n)) for n in range(gang.total)] == [0, 1, 2, 3, 4]
    assert gang.place(2) == ("worker", 0)
    for role, index in (("ps", 2), ("other", 0), ("worker", -1)):
        with pytest.raises(KeyError):
            gang.row(Peer(role, index, "", "", "", ""))
