"""When a 401 or 403 of an API server is permanent."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from typing import Any

import pytest

from pairun.base.refusals import LOADING_S, Refusals
from tests.conftest import SHARED

OBSERVED = SHARED / "kubernetes" / "observed" / "1.32"
FAILED = None


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The monotonic time, in a list of one."""
    clock = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    return clock


@pytest.mark.parametrize(
    "steps",
    [
        [(0, 403, False)],
        [(0, 401, False)],
        [(0, 200, False), (5, 403, False)],
        [(0, 429, True), (5, 403, False)],
        [(0, FAILED, True), (1, 403, True), (2, 401, True)],
        [(0, 503, True), (1, 403, True), (2, 200, False), (3, 403, True)],
        [(0, 500, True), (1, 403, True), (60.9, 403, True), (61.1, 403, False), (62, 401, False)],
        # The first request after a long wait meets a server that has just started.
        [(0, FAILED, True), (300, 403, True), (359, 403, True), (361, 403, False)],
        [(0, FAILED, True), (1, 200, False), (2, 403, True), (3, 200, False), (900, 403, False)],
        [(0, FAILED, True), (1, 403, True), (50, FAILED, True), (90, 403, True), (151, 403, False)],
    ],
)
def test_when_a_refusal_is_temporary(
    now: list[float], steps: list[tuple[float, int | None, bool]]
) -> None:
    """After a failure, until 60 s after the first refusal; without one, never."""
    assert LOADING_S == 60
    refusals, began = Refusals(), now[0]
    for seconds, status, temporary in steps:
        now[0] = began + seconds
        if status is FAILED:
            refusals.failed()
        else:
            assert refusals.may_pass(status) is temporary, (seconds, status)


def _rows(folder: str) -> Iterator[tuple[str, list[tuple[float, int | None]]]]:
    """The responses to each series of requests in a recording, by the time of their end."""
    series: dict[str, list[tuple[float, int | None]]] = {}
    for line in (OBSERVED / folder / "conversation.jsonl").read_text().splitlines():
        row: dict[str, Any] = json.loads(line)
        if "timeline" in row:
            seconds = row["t"] + row["took"]
            series.setdefault(row["timeline"], []).append((seconds, row.get("status")))
    for label, rows in series.items():
        yield label, sorted(rows, key=lambda row: row[0])


@pytest.mark.shared
@pytest.mark.parametrize(
    "folder",
    [
        "10-restart-sigterm", "11-restart-sigkill", "12-restart-open-loop",
        "13-restart-many-rolebindings",
    ],
)  # fmt: skip
def test_recorded_restarts_refuse_nobody_for_good(now: list[float], folder: str) -> None:
    """Who has the right meets only temporary refusals; who has none, permanent ones before."""
    false_refusals = 0
    for label, rows in _rows(folder):
        refusals = Refusals()
        failed = False
        for now[0], status in rows:
            if status is FAILED:
                refusals.failed()
                failed = True
            elif refusals.may_pass(status):
                assert failed or status >= 500
            else:
                assert status < 300 or ("nobody" in label and not failed), (label, now[0])
            false_refusals += (
                status == 403 and "nobody" not in label and label not in ("readyz", "livez")
            )
        if "nobody" in label:
            now[0] += LOADING_S
            assert not refusals.may_pass(403)
    assert false_refusals >= (10 if folder > "12" else 0)


def test_forks_share_what_they_know() -> None:
    """A failure in one process makes a refusal in the next one temporary."""
    refusals = Refusals()
    pid = os.fork()
    if not pid:
        refusals.failed()
        os._exit(0)
    os.waitpid(pid, 0)
    assert refusals.may_pass(403)
