"""The console prints an event in one line, without blanks for what is not there."""

from __future__ import annotations

import io

import pytest

from pairun.report.console import Console
from pairun.secrets.vault import Vault


@pytest.mark.parametrize(("name", "shown"), [("It links", "link: It links"), ("", "link")])
def test_a_task_without_a_name_shows_its_id(name: str, shown: str) -> None:
    """No colon and no blanks stand for a missing name."""
    out = io.StringIO()
    Console(out, Vault())(
        {
            "type": "task_end", "task": "link", "name": name, "outcome": "changed", "attempts": 1,
            "of": 1, "seconds": 0.02, "message": "",
        }
    )  # fmt: skip
    assert out.getvalue() == f"changed  {shown} (20 ms)\n"


def test_a_task_that_its_condition_skips_has_one_short_line() -> None:
    """It did nothing, so that its sentence and its time say nothing."""
    out = io.StringIO()
    Console(out, Vault())(
        {
            "type": "task_end", "task": "mount", "name": "It mounts", "outcome": "skipped",
            "attempts": 0, "of": 1, "seconds": 0.0, "message": "its condition is false",
        }
    )  # fmt: skip
    assert out.getvalue() == "skipped  mount: its condition is false\n"
