"""Tasks at once: they run together, fail together, and cost nothing while they wait."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import pytest


def test_concurrency_is_real(here: Any, group: Any) -> None:
    """Two tasks that need each other to go on both end."""
    for name in ("there", "back"):
        os.mkfifo(here.folder / name)
    path = str(here.folder)
    a = f"open({path!r} + '/there', 'w').write('x'); print(open({path!r} + '/back').read())"
    b = f"print(open({path!r} + '/there').read()); open({path!r} + '/back', 'w').write('y')"
    outcome = here.run(group(here.task("a", a, timeout_s=20.0), here.task("b", b, timeout_s=20.0)))
    assert outcome.event == "success"
    assert (here.lines("a"), here.lines("b")) == (["y"], ["x"])


def test_a_group_fails_as_a_whole(here: Any, group: Any, gone: Callable[[int], bool]) -> None:
    """When one fails, the others are stopped, and the one that failed is the one reported."""
    fifo = here.folder / "fifo"
    os.mkfifo(fifo)
    sleeper = f"import os, time; open({str(fifo)!r}, 'w'); print(os.getpid()); time.sleep(60)"
    culprit = f"open({str(fifo)!r}).read(); raise Permanent('it was me')"
    outcome = here.run(
        group(
            here.task("a", sleeper, retries=3, exit_codes={"transient": 4}),
            here.task("b", culprit, exit_codes={"permanent": 5}),
        ),
        here.task("c"),
    )
    assert (outcome.failed, outcome.exit_code, outcome.message) == ("b", 5, "b: it was me")
    assert here.end("a")["outcome"] == "failed"
    assert here.end("a")["message"] == "another task of its group failed"
    assert here.of("attempt_begin", "c") == []
    assert len(here.of("attempt_begin", "a")) == 1
    assert all(gone(int(line)) for line in here.lines("a"))


def test_one_that_waits_is_cancelled(here: Any, group: Any) -> None:
    """A task between two attempts is cancelled at once."""
    fifo = here.folder / "fifo"
    os.mkfifo(fifo)
    waits = f"open({str(fifo)!r}, 'w'); raise Transient('x', retry_after_s=60)"
    outcome = here.run(
        group(
            here.task("a", waits, retries=1),
            here.task("b", f"open({str(fifo)!r}).read(); import time; time.sleep(0.2); 1/0"),
        )
    )
    assert outcome.failed == "b"
    assert here.end("a")["message"] == (
        "another task of its group failed, before a further attempt; attempt 1 of 2: x"
    )


@pytest.mark.parametrize("first", ["bad", "good"])
def test_bad_input_in_a_group(here: Any, group: Any, first: str) -> None:
    """One whose input is bad fails the group, wherever it stands."""
    bad = here.task("bad", args={"number": "x"})
    good = here.task("good", "import time; time.sleep(60)")
    outcome = here.run(group(*((bad, good) if first == "bad" else (good, bad))))
    assert (outcome.failed, here.end("good")["outcome"]) == ("bad", "failed")


def test_ignored_failures_cancel_nothing(here: Any, group: Any) -> None:
    """A failure that is ignored lets the others end."""
    outcome = here.run(
        group(
            here.task("a", "1/0", failure_policy="ignore"),
            here.task("b", "import time; time.sleep(0.3); print('done')"),
        )
    )
    assert outcome.event == "success"
    assert here.lines("b") == ["done"]


def test_the_cancelled_is_not_ignored(here: Any, group: Any) -> None:
    """One that was cancelled has failed, even where its own failures are ignored."""
    here.run(
        group(here.task("a", "import time; time.sleep(60)", failure_policy="ignore"),
              here.task("b", "1/0"))
    )  # fmt: skip
    assert here.end("a")["outcome"] == "failed"


def test_handlers_of_a_group(here: Any, group: Any) -> None:
    """All that began have registered theirs, in the group's order."""
    undo = [here.task(f"u{n}", events=("failure",), failure_policy="ignore") for n in "ab"]
    here.run(
        group(here.task("a", "import time; time.sleep(60)", on_exit=(undo[0],)),
              here.task("b", "1/0", on_exit=(undo[1],)))
    )  # fmt: skip
    assert [e["task"] for e in here.of("task_end") if e["handler"]] == ["ub", "ua"]


def test_many_at_once(here: Any, group: Any) -> None:
    """A large group ends, and every task has one begin and one end."""
    tasks = [here.task(f"t{i}", f"print({i})") for i in range(40)]
    assert here.run(group(*tasks)).event == "success"
    assert sorted(map(int, here.lines())) == list(range(40))
    assert len(here.of("attempt_begin")) == len(here.of("attempt_end")) == 40


def test_waiting_costs_no_time_of_ours(here: Any) -> None:
    """While an attempt runs and while a task waits, the executor sleeps."""
    before = time.process_time()
    here.run(
        here.task("a", "import time; time.sleep(0.4)"),
        here.task("b", "raise Transient('x', retry_after_s=0.4)", retries=1),
    )
    assert time.process_time() - before < 0.2
