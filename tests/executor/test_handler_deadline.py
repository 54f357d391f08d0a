"""How long an exit handler may take when nobody told us to stop."""

from __future__ import annotations

from typing import Any

import pytest

from pairun.executor import handlers
from pairun.plan import EVENTS


@pytest.mark.parametrize(
    ("deadline_s", "outcome"), [(None, "ignored"), (20.0, "ok")], ids=["default", "own"]
)
def test_own_deadline(
    here: Any, monkeypatch: pytest.MonkeyPatch, deadline_s: float | None, outcome: str
) -> None:
    """The default bounds a handler that says nothing itself; one with a deadline has all of it."""
    monkeypatch.setattr(handlers, "HANDLER_DEADLINE_S", 0.5)
    handler = here.task(
        "h", "import time; time.sleep(1.5)", events=EVENTS, failure_policy="ignore",
        deadline_s=deadline_s,
    )  # fmt: skip
    here.run(here.task("a", on_exit=(handler,)))
    assert here.end("h")["outcome"] == outcome


def test_a_budget_is_shared(here: Any) -> None:
    """Once there is an end for all of them, an own deadline does not reach beyond it."""
    handler = here.task(
        "h", "import time; time.sleep(20)", events=EVENTS, failure_policy="ignore", deadline_s=60.0
    )
    here.run(here.task("a", on_exit=(handler,)), budget_s=0.5)
    assert here.end("h")["outcome"] == "ignored"
    assert here.end("h")["seconds"] < 10
