"""Facts and barriers: one truth for all, and waits that end."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable

import pytest

from pairun.rendezvous.facts import Facts
from pairun.rendezvous.refusals import LeaderRefusal, NoKey, NotInTime
from pairun.rendezvous.roster import JobKey
from pairun.rendezvous.wire import Channel, pack
from tests.rendezvous.conftest import JOB, KEY, WAIT_S, Gathering, Waiting

Make = Callable[[int], Gathering]
Background = Callable[[Callable[[], object]], Waiting]


def test_the_first_writer_wins(gathering: Make, background: Background) -> None:
    """However many write at once, all hear the same value, and so do those who wait."""
    job = gathering(1)
    job.lead()
    waits = [background(lambda: job.facts().get("x", WAIT_S)) for _ in range(5)]
    writes = [background(lambda n=n: job.facts().put("x", {"n": n}, WAIT_S)) for n in range(10)]  # type: ignore[misc]
    found = [call.result() for call in (*waits, *writes)]
    assert found == [found[0]] * 15
    assert job.facts().put("x", None, WAIT_S) == found[0]
    assert job.facts().put("x", 7, WAIT_S, replace=True) == 7
    assert job.facts().get("x", WAIT_S) == 7


def test_a_fact_that_nobody_sets_is_waited_for_in_vain(gathering: Make) -> None:
    """The wait ends, and names the fact."""
    job = gathering(1)
    job.lead()
    with pytest.raises(NotInTime, match="the fact x was not set in time") as e:
        job.facts().get("x", 0.2)
    assert [p.id for p in e.value.problems] == ["PR775"]


def test_a_barrier_opens_when_all_have_come(gathering: Make, background: Background) -> None:
    """To come twice counts once; an open barrier stays open; a different count is refused."""
    job = gathering(1)
    job.lead()
    for _ in range(2):
        with pytest.raises(NotInTime, match="not all 3 members reached the barrier b"):
            job.facts().arrive("b", "one", 3, 0.2)
    calls = [background(lambda w=w: job.facts().arrive("b", w, 3, WAIT_S)) for w in ("one", "two")]  # type: ignore[misc]
    job.facts().arrive("b", "three", 3, WAIT_S)
    for call in calls:
        call.result()
    job.facts().arrive("b", "late", 3, WAIT_S)
    with pytest.raises(NotInTime):
        job.facts().arrive("c", "one", 2, 0.2)
    with pytest.raises(LeaderRefusal, match="a different count"):
        job.facts().arrive("c", "two", 3, WAIT_S)


def test_who_gave_up_is_not_counted(gathering: Make, background: Background) -> None:
    """A barrier opens while all are there to hear it; who comes after it was opened passes."""
    job = gathering(1)
    job.lead()
    for who in ("one", "two"):
        with pytest.raises(NotInTime):
            job.facts().arrive("b", who, 2, 0.3)
    waits = background(lambda: job.facts().arrive("b", "one", 2, WAIT_S))
    job.facts().arrive("b", "two", 2, WAIT_S)
    waits.result()


def test_who_waits_at_a_barrier_is_told_by_the_next_leader(
    gathering: Make, background: Background
) -> None:
    """One that came before the leader's process was another one is there when the barrier opens."""
    job = gathering(1)
    _, port = job.lead()
    with pytest.raises(NotInTime):
        job.facts().arrive("b", "one", 2, 0.3)
    job.stop()
    job.lead(port=port)
    with pytest.raises(NotInTime):
        job.facts().arrive("b", "two", 2, 0.3)
    waits = background(lambda: job.facts().arrive("b", "one", 2, WAIT_S))
    job.facts().arrive("b", "two", 2, WAIT_S)
    waits.result()


def test_a_leader_stays_for_those_who_wait(gathering: Make, background: Background) -> None:
    """What is told while it ends reaches those who asked before; then it ends at once."""
    job = gathering(1)
    job.lead()
    with socket.create_connection(job.address or ("", 0), WAIT_S) as asks:
        channel = Channel(KEY, serves=False)
        asks.sendall(channel.greeting)
        while not channel.is_ready:
            list(channel.feed(asks.recv(4096)))
        asks.sendall(
            channel.frame(pack({"t": "get", "k": "x", "job": JOB.uid, "attempt": JOB.attempt}))
        )
        job.facts().put("later", 0, WAIT_S)
        ends = background(lambda: job.stop(stay=True))
        assert job.facts().put("x", 1, WAIT_S) == 1
        told = [f.message for f in channel.feed(asks.recv(4096))]
    assert told == [{"t": "is", "v": 1}]
    ends.result()


@pytest.mark.slow
def test_a_silent_address_is_gone_too() -> None:
    """Where a Pod was, packets may vanish: that counts as a leader that is not reached."""
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        address = full.getsockname()
        # A full queue of connections swallows the next one.
        with contextlib.ExitStack() as stack:
            for _ in range(3):
                each = stack.enter_context(socket.socket())
                each.setblocking(False)
                each.connect_ex(address)
            with pytest.raises(NotInTime, match="not reached: no answer from its address"):
                Facts(address, JOB, KEY).get("x", 3600.0, gone_s=0.1)


def test_a_leader_that_has_ended_is_not_waited_for(gathering: Make) -> None:
    """Where somebody knows that it has ended, nobody waits for its address."""
    job = gathering(1)
    job.lead()
    job.stop()
    with pytest.raises(NotInTime, match="the leader has ended"):
        job.facts().get("x", 3600.0, has_ended=lambda: True)


def test_a_leader_says_farewell(gathering: Make) -> None:
    """Its last process tells those who wait for a verdict that none comes."""
    job = gathering(1)
    job.lead(is_last=True)
    with socket.create_connection(job.address or ("", 0), WAIT_S) as asks:
        channel = Channel(KEY, serves=False)
        asks.sendall(channel.greeting)
        while not channel.is_ready:
            list(channel.feed(asks.recv(4096)))
        question = {"t": "get", "k": "x", "job": JOB.uid, "attempt": JOB.attempt}
        asks.sendall(channel.frame(pack(question)))
        # Answered after the question before it.
        job.facts().put("y", 0, WAIT_S)
        job.stop()
        assert [f.message for f in channel.feed(asks.recv(4096))] == [{"t": "bye"}]


def test_a_farewell_ends_a_wait(background: Background) -> None:
    """Who waits for a verdict hears that none comes, and does the work itself."""
    with socket.create_server(("127.0.0.1", 0)) as leader:

        def say_farewell() -> None:
            peer, _ = leader.accept()
            with peer:
                channel = Channel(KEY, serves=True)
                peer.sendall(channel.greeting)
                while not list(channel.feed(peer.recv(4096))):
                    pass
                peer.sendall(channel.frame(pack({"t": "bye"})))

        leaves = background(say_farewell)
        with pytest.raises(NotInTime, match="the leader has ended"):
            Facts(leader.getsockname(), JOB, KEY).get("x", 3600.0, gone_s=3600.0)
        leaves.result()


def test_too_much_is_refused(gathering: Make) -> None:
    """A value has a limit, and so has the number of facts."""
    job = gathering(1)
    job.lead(state=False)
    with pytest.raises(LeaderRefusal, match="too large"):
        job.facts().put("x", "y" * 20_000, WAIT_S)
    for n in range(1024):
        job.facts().put(f"n{n}", n, WAIT_S)
    with pytest.raises(LeaderRefusal, match="too many names"):
        job.facts().put("one more", 0, WAIT_S)


def test_facts_of_another_attempt_are_refused(gathering: Make) -> None:
    """An older Pod reads nothing of a newer attempt."""
    job = gathering(1)
    job.lead()
    with pytest.raises(LeaderRefusal, match="older attempt"):
        job.facts(job=JobKey(JOB.uid, 0)).get("x", WAIT_S)


def test_a_wait_survives_a_leader_that_starts_again(
    gathering: Make, background: Background
) -> None:
    """Between init and the user's container nobody answers for a while."""
    job = gathering(1)
    _, port = job.lead()
    waits = background(lambda: job.facts().get("x", WAIT_S))
    job.facts().put("y", 1, WAIT_S)
    job.stop()
    job.lead(port=port)
    job.facts().put("x", 2, WAIT_S)
    assert waits.result() == 2
    assert job.facts().get("y", WAIT_S) == 1


def test_without_a_key_there_are_no_facts() -> None:
    """Values are not taken from peers that cannot prove themselves."""
    with pytest.raises(NoKey) as e:
        Facts(("127.0.0.1", 1), JOB, None)
    assert [p.id for p in e.value.problems] == ["PR778"]


def test_what_is_not_the_leader_is_told() -> None:
    """Nobody there, silence, and another protocol."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = silent.getsockname()
        with pytest.raises(NotInTime, match="did not answer"):
            Facts(address, JOB, KEY).get("x", 0.2)
    with pytest.raises(NotInTime, match="the leader was not reached: Connection refused"):
        Facts(address, JOB, KEY).get("x", 0.2)


def test_an_impostor_is_told(background: Background) -> None:
    """Its answers are no values."""
    with socket.create_server(("127.0.0.1", 0)) as impostor:

        def lie() -> None:
            peer, _ = impostor.accept()
            with peer:
                peer.sendall(b"PRZ1" + b"n" * 16 + b"\0\0\0\0\x02" + b"m" * 32 + b"{}")
                while peer.recv(4096):
                    pass

        lies = background(lie)
        with pytest.raises(NotInTime, match="the server at its address is not the leader"):
            Facts(impostor.getsockname(), JOB, KEY).get("x", 0.15)
        lies.result()


def test_a_leader_that_is_gone_is_not_waited_for() -> None:
    """Where nobody listens for as long as the caller allows, the rest of the time is not used up."""
    # An hour would be longer than any test may take.
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        facts = Facts(bound.getsockname(), JOB, KEY)
        with pytest.raises(NotInTime, match="the leader was not reached"):
            facts.get("x", 3600.0, gone_s=0.1)
