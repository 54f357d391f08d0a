"""Attempts, waits and limits."""

from __future__ import annotations

import collections
import statistics
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairun.executor.retry import MAX_DELAY_S, MAX_RETRY_AFTER_S, retry_delay
from pairun.plan import Task
from tests.webserver import Answer, WebServer

COUNT = """
import os
path = os.path.join(ctx.pai_dir, 'count')
n = os.path.getsize(path) + 1 if os.path.exists(path) else 1
open(path, 'a').write('x')
"""


def test_retries_are_further_attempts(here: Any) -> None:
    """`retries: 2` is three attempts, each with a begin and an end."""
    here.run(here.task(code="raise Transient('x')", retries=2, delay_s=0.0))
    assert [(e["attempt"], e["of"]) for e in here.of("attempt_begin")] == [(1, 3), (2, 3), (3, 3)]
    assert [e["attempt"] for e in here.of("attempt_end")] == [1, 2, 3]
    assert (here.end()["attempts"], here.end()["outcome"]) == (3, "failed")


def test_a_retry_heals(here: Any) -> None:
    """An attempt that succeeds ends the task, and messages say which one it was."""
    code = COUNT + "if n < 3: raise Transient('not yet')"
    outcome = here.run(here.task(code=code, retries=5, delay_s=0.001))
    assert (outcome.event, here.end()["attempts"]) == ("success", 3)
    assert [w["because"] for w in here.of("wait")] == [
        "attempt 1 of 6 failed (transient): not yet",
        "attempt 2 of 6 failed (transient): not yet",
    ]
    assert "attempt 3 of 6)" in here.console


@pytest.mark.parametrize(
    ("retry_on", "kind", "attempts"),
    [
        (None, "Transient", 2), (None, "TimedOut", 2), (None, "Conflict", 2),
        (None, "Permanent", 1), (None, "Failure", 1),
        (("permanent",), "Permanent", 2), (("permanent",), "Transient", 1), ((), "Transient", 1),
    ],
)  # fmt: skip
def test_which_kinds_are_tried_again(
    here: Any, retry_on: tuple[str, ...] | None, kind: str, attempts: int
) -> None:
    """By default what may heal is tried again; `retry_on` chooses."""
    more = {} if retry_on is None else {"retry_on": retry_on}
    here.run(here.task(code=f"raise {kind}('x')", retries=1, delay_s=0.0, **more))
    assert here.end()["attempts"] == attempts


def test_delays_have_full_jitter() -> None:
    """Every delay lies between nothing and the doubled base, evenly, and under five minutes."""
    task = Task(id="a", name="A", module="look", args={}, delay_s=2.0)
    for attempts in (1, 2, 5, 8, 9, 40, 5000):
        longest = min(MAX_DELAY_S, 2.0 * 2.0 ** min(attempts - 1, 20))
        delays = [retry_delay(task, attempts) for _ in range(4000)]
        assert min(delays) >= 0
        assert max(delays) <= longest <= MAX_DELAY_S
        assert statistics.mean(delays) == pytest.approx(longest / 2, rel=0.06)
        assert min(delays) < longest * 0.02 < longest * 0.98 < max(delays)


@pytest.mark.parametrize(
    ("delay_s", "attempts", "asked", "least", "longest"),
    [
        (2.0, 1, 3.0, 3.0, 5.0),  # the task's own delay on top
        (2.0, 5, 3.0, 3.0, 35.0),  # which grows with the attempts
        (2.0, 1, 60.0, 60.0, 90.0),  # but never less than half of what was asked
        (200.0, 9, 0.25, 0.25, 300.25),
        (0.0, 1, 1e9, MAX_RETRY_AFTER_S, MAX_RETRY_AFTER_S + MAX_DELAY_S),
        (0.0, 1, -5.0, 0.0, 0.0),
    ],
)
def test_the_server_decides(
    delay_s: float, attempts: int, asked: float, least: float, longest: float
) -> None:
    """A Retry-After is the least, jitter comes on top evenly; nonsense in it is bounded."""
    task = Task(id="a", name="A", module="look", args={}, delay_s=delay_s)
    delays = [retry_delay(task, attempts, asked) for _ in range(4000)]
    assert least <= min(delays)
    assert max(delays) <= longest
    spread = longest - least
    assert min(delays) <= least + spread * 0.02
    assert max(delays) >= longest - spread * 0.02
    assert statistics.mean(delays) == pytest.approx(least + spread / 2, rel=0.06)


def test_a_failure_that_heals_soon_or_never_is_retried_for_its_time(here: Any) -> None:
    """Its time counts from the first one; the last attempt is at its end, whatever `delay` is."""
    code = "raise Transient('no such name', hint='typo?', retry_within_s=0.2)"
    outcome = here.run(here.task(code=code, retries=10_000, delay_s=100.0))
    end = here.end()
    assert (outcome.event, end["outcome"], end["kind"]) == ("failure", "failed", "transient")
    assert end["message"] == "no such name (no further attempt: retried for 200ms)"
    assert end["hint"] == "typo?"
    assert 2 <= end["attempts"] < 10_000
    waited = sum(w["seconds"] for w in here.of("wait"))
    assert waited <= 0.21


def test_a_failure_that_heals_soon_heals(here: Any) -> None:
    """A name that appears in time is used; another failure has the task's own retries."""
    code = COUNT + (
        "if n < 3: raise Transient('no such name', retry_within_s=60.0)\n"
        "if n < 6: raise Transient('busy')"
    )
    outcome = here.run(here.task(code=code, retries=9, delay_s=0.001))
    assert (outcome.event, here.end()["attempts"]) == ("success", 6)


def test_many_pods_do_not_come_back_at_once() -> None:
    """Of 10,000 that were told "wait 30 s", no second sees more than a tenth."""
    task = Task(id="a", name="A", module="look", args={}, delay_s=2.0)
    seconds = collections.Counter(int(retry_delay(task, 3, 30.0)) for _ in range(10_000))
    assert max(seconds.values()) < 1000


@given(asked=st.floats(0, 1e5), left=st.floats(0.001, 1e5), attempts=st.integers(1, 20))
def test_jitter_alone_misses_no_deadline(asked: float, left: float, attempts: int) -> None:
    """What the server asked for fits before the deadline: so does the wait, and an attempt."""
    task = Task(id="a", name="A", module="look", args={}, delay_s=2.0)
    least = min(asked, MAX_RETRY_AFTER_S)
    delay = retry_delay(task, attempts, asked, left)
    assert delay >= least
    if least < left:
        assert delay <= least + (left - least) / 2 + 1e-6


def test_retry_after_of_a_module(here: Any) -> None:
    """The wait between two attempts is what the failure asked for and more, and is explained."""
    here.run(here.task(code="raise Transient('x', retry_after_s=0.05)", retries=1, delay_s=0.01))
    (wait,) = here.of("wait")
    assert 0.05 <= wait["seconds"] <= 0.076
    assert wait["because"] == (
        "attempt 1 of 2 failed (transient): x (the server requests a wait of 50ms)"
    )
    assert "requests a wait of 50ms); next in" in here.console


def test_the_deadline_ends_the_attempts(here: Any) -> None:
    """No attempt begins after the task's deadline, and the message says why."""
    code = "raise Transient('x', retry_after_s=60)"
    here.run(here.task(code=code, retries=5, deadline_s=20.0))
    assert here.end()["attempts"] == 1
    assert here.end()["message"] == (
        "x (no further attempt: the server requests a wait of 1m, and the next would begin "
        "after the task's deadline of 20s)"
    )


def test_a_wait_that_is_too_long_is_cut_and_said(here: Any) -> None:
    """A server that asks for days is not obeyed for longer than an hour, and people read that."""
    code = "raise Transient('x', retry_after_s=200_000)"
    here.run(here.task(code=code, retries=5, deadline_s=20.0))
    assert "requests a wait of 2d7h33m20s, and pairun waits at most 1h" in here.end()["message"]


def test_the_deadline_ends_an_attempt(here: Any) -> None:
    """The deadline of a task bounds the attempt that runs, too."""
    here.run(
        here.task(code="ctx.log('up'); import time; time.sleep(60)", deadline_s=0.3, retries=3)
    )
    assert (here.end()["kind"], here.end()["attempts"]) == ("timeout", 1)
    assert here.end()["seconds"] < 5


def test_an_attempt_that_timed_out_is_tried_again(here: Any) -> None:
    """A timeout ends one attempt; the next may succeed."""
    code = COUNT + "import time\nif n == 1: time.sleep(60)"
    outcome = here.run(here.task(code=code, timeout_s=0.3, retries=1, delay_s=0.0))
    assert (outcome.event, here.end()["attempts"]) == ("success", 2)
    (wait,) = here.of("wait")
    assert "attempt 1 of 2 failed (timeout): it was stopped after" in wait["because"]


def test_an_attempt_knows_that_the_one_before_met_a_failing_server(here: Any) -> None:
    """Attempts are processes of their own; a 403 after the outage is retried in the next one."""
    answers = iter([None, Answer(403), Answer(200)])

    with WebServer(lambda _: next(answers)) as server:
        here.env |= {
            "PAIRUN_API_CREDENTIALS": str(here.folder),
            "KUBE_APISERVER_ADDRESS": server.url,
        }
        here.run(here.task(code="ctx.ask_api('/api/v1/pods')", retries=5, delay_s=0.001))
    kinds = [e.get("kind") for e in here.of("attempt_end")]
    assert (here.end()["outcome"], kinds) == ("ok", ["transient", "transient", None])
