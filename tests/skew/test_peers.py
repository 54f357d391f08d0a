"""Instances of 0.1 and of today in one job: they gather, and share facts."""

from __future__ import annotations

import socket
from collections.abc import Callable

import pytest

from pairun.rendezvous.facts import Facts
from pairun.rendezvous.refusals import NotInTime
from tests.rendezvous.conftest import JOB, KEY, WAIT_S, Gathering, Waiting
from tests.skew.oldpeer import Message, OldPeer

Make = Callable[[int], Gathering]
Background = Callable[[Callable[[], object]], Waiting]
JOIN: Message = {"t": "join", "job": JOB.uid, "attempt": JOB.attempt}


def row(index: int) -> list[object]:
    """A member as 0.1 sends it: rank, UID, address, host's address, name of the Pod."""
    return [index, f"uid-{index}", f"127.0.1.{1 + index}", "10.0.0.1", f"job-worker-{index}"]


def old_member(job: Gathering) -> OldPeer:
    """A member of 0.1 that is connected to today's leader."""
    return OldPeer(socket.create_connection(job.address or ("", 0), WAIT_S), KEY, serves=False)


def test_an_old_member_joins_todays_leader(gathering: Make, background: Background) -> None:
    """Both get the roster with each other in it."""
    job = gathering(2)
    job.lead()
    today = background(lambda: job.join(0))
    with old_member(job) as old:
        old.say({**JOIN, "m": row(1)})
        heard = old.hear()
        while heard["t"] != "all":
            assert heard["t"] in ("stay", "missing")
            heard = old.hear()
    assert [each[0] for each in heard["m"]] == [0, 1]
    roster = today.result()
    assert [m.pod_uid for m in roster.members] == ["uid-0", "uid-1"]  # type: ignore[attr-defined]


def test_an_old_member_reads_and_writes_facts(gathering: Make) -> None:
    """A verdict that one gives is taken by the other."""
    job = gathering(2)
    job.lead()
    base = {"job": JOB.uid, "attempt": JOB.attempt}
    with old_member(job) as old:
        old.say({**base, "t": "put", "k": "task init a", "v": {"outcome": "ok"}})
        assert old.hear() == {"t": "is", "v": {"outcome": "ok"}}
    assert job.facts().get("task init a", WAIT_S) == {"outcome": "ok"}
    job.facts().put("task init b", {"outcome": "failed"}, WAIT_S)
    with old_member(job) as old:
        old.say({**base, "t": "get", "k": "task init b"})
        assert old.hear() == {"t": "is", "v": {"outcome": "failed"}}


def test_today_joins_an_old_leader(gathering: Make, background: Background) -> None:
    """It says what 0.1 understands, and takes the roster that 0.1 sends."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def lead() -> Message:
            with OldPeer(listener.accept()[0], KEY, serves=True) as old:
                said = old.hear()
                old.say({"t": "stay", "missing": {"n": 1, "some": [1]}})
                old.say({"t": "all", "m": [row(0), said["m"]]})
            return said

        leads = background(lead)
        job = gathering(2)
        job.address = listener.getsockname()
        roster = job.join(1)
        assert roster is not None
        assert [m.index for m in roster.members] == [0, 1]
        said = leads.result()
        assert isinstance(said, dict)
        assert {k: said[k] for k in JOIN} == JOIN
        assert len(said["m"]) == len(row(1))


def test_an_old_leader_that_ends_says_no_farewell(background: Background) -> None:
    """Its connection breaks; who waits asks again, until it is gone for as long as is allowed."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = listener.getsockname()

        def end() -> None:
            with OldPeer(listener.accept()[0], KEY, serves=True) as old:
                assert old.hear()["t"] == "get"
            listener.close()

        ends = background(end)
        with pytest.raises(NotInTime, match="was not reached"):
            Facts(address, JOB, KEY).get("x", 3600.0, gone_s=0.2)
        ends.result()


def test_an_old_member_outlives_todays_farewell(gathering: Make) -> None:
    """It does not know the word, and nothing else is said to it."""
    job = gathering(1)
    job.lead(is_last=True)
    with old_member(job) as old:
        old.say({"t": "get", "k": "x", "job": JOB.uid, "attempt": JOB.attempt})
        job.facts().put("y", 0, WAIT_S)
        job.stop()
        assert old.hear() == {"t": "bye"}
