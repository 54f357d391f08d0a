"""An API server that misbehaves."""

from __future__ import annotations

import threading
import time

import pytest

from pairun.engines.kubernetes import apierrors
from pairun.engines.kubernetes.apierrors import ClusterRefusal, Unreachable
from pairun.errors import PairunError
from tests.engines.kubernetes.samples import PODS, TOKEN, Serve, ids
from tests.fakeapi import Answer, status


def test_too_many_questions_are_asked_again(serve: Serve) -> None:
    """A 429 is waited out, and nobody hears of it."""
    cluster, fake = serve(
        lambda *_: status(429, "TooManyRequests") if len(fake.asked) < 3 else (200, {"items": [{}]})
    )
    assert list(cluster.objects(PODS, "a=b")) == [{}]
    assert len(fake.asked) == 3


@pytest.mark.parametrize(
    ("answer", "id_", "words"),
    [
        ((200, b"<html>"), "PR787", "the response is not from an API server"),
        ((200, b"[" * 9999), "PR787", "the response is not from an API server"),
        (None, "PR787", "it closed the connection"),
        ((503, b"busy"), "PR788", "HTTP status 503"),
        (status(401, "Unauthorized"), "PR788", "does not accept this login"),
        (status(403, "Forbidden", 'User "x" cannot list resource "pods"'), "PR788", "list pods"),
    ],
)
def test_an_api_server_that_misbehaves(serve: Serve, answer: Answer, id_: str, words: str) -> None:
    """One sentence with an id, advice, and no token."""
    cluster, _ = serve(lambda *_: answer)
    with pytest.raises((ClusterRefusal, Unreachable)) as e:
        list(cluster.objects(PODS, "a=b"))
    assert ids(e) == [id_]
    assert words in str(e.value)
    assert e.value.problems[0].hint
    assert TOKEN not in f"{e.value} {e.value.problems[0].hint}"


def test_a_silent_server_is_given_up(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call has a deadline, whatever the server does."""
    monkeypatch.setattr(apierrors, "SILENCE_S", 0.2)
    let_go = threading.Event()
    cluster, _ = serve(lambda *_: (200, {}) if let_go.wait(30) else None)
    with pytest.raises(Unreachable) as e:
        cluster.get(PODS)
    let_go.set()
    assert "it sends nothing" in str(e.value)


def test_a_refusal_after_an_outage_may_pass_for_a_while(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A restarted server loads the rights late; a first refusal without a failure counts at once."""
    answers = iter([status(403), None, status(403), status(503), status(403), status(401)])
    cluster, _ = serve(lambda *_: next(answers))
    now = time.monotonic()
    with monkeypatch.context() as clock:
        clock.setattr(time, "monotonic", lambda: now)
        for seconds, passing in ((0, False), (1, None), (2, True), (50, True), (90, True)):
            now += seconds
            with pytest.raises(PairunError) as e:
                cluster.get("/version")
            assert getattr(e.value, "passing", None) is passing
        now += 61
        with pytest.raises(ClusterRefusal) as e:
            cluster.get("/version")
        assert not e.value.passing
