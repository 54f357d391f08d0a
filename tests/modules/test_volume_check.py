"""The module volume_check."""

from __future__ import annotations

import errno
import os
import time
from typing import Any

import pytest

from tests.modules.conftest import Harness

TABLE: list[dict[str, Any]] = [
    {"what": "what is mounted and answers passes", "args": {"paths": ["/proc", "/"]}},
    {"what": "a directory where nothing is mounted", "args": {"paths": ["/", "{tmp}"]},
     "failure": "permanent", "fault": "platform", "says": "no volume is mounted at {tmp}"},
    {"what": "nothing at all", "args": {"paths": ["{tmp}/none"]}, "failure": "permanent",
     "says": "no volume is mounted at {tmp}/none"},
    {"what": "all that are missing are named", "args": {"paths": ["{tmp}/a", "/", "{tmp}/b"]},
     "failure": "permanent", "says": "no volume is mounted at {tmp}/a, {tmp}/b"},
]  # fmt: skip


@pytest.mark.parametrize("row", TABLE, ids=[r["what"] for r in TABLE])
def test_table(harness: Harness, row: dict[str, Any]) -> None:
    """Each row does as it says."""
    harness.table("volume_check", row)


def test_paths_are_absolute(harness: Harness) -> None:
    """Anything else depends on where the task runs."""
    (problem,) = harness.problems("volume_check", {"paths": ["data"]})
    assert "must be absolute" in problem.message


def test_a_server_that_hangs_is_named(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check ends all the same."""
    monkeypatch.setattr(os, "statvfs", lambda _: time.sleep(60))
    outcome = harness.run("volume_check", {"paths": ["/proc"], "answer_within": "200ms"})
    assert outcome.failure is not None
    assert outcome.failure.kind == "timeout"
    assert outcome.failure.message == "the volume at /proc does not answer within 0.2s"


def test_a_mount_that_has_gone_stale_may_heal(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after the file server was restarted."""

    def stale(_: object) -> None:
        raise OSError(errno.ESTALE, "Stale file handle")

    monkeypatch.setattr(os, "statvfs", stale)
    outcome = harness.run("volume_check", {"paths": ["/proc"]})
    assert outcome.failure is not None
    assert outcome.failure.kind == "transient"
    assert "Stale file handle" in outcome.failure.message or "does not work" in (
        outcome.failure.message
    )
