"""Tables of cases compare all that a row says, and take no key that means nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pairun.testing import Case, FakeWorld, RealWorld, load, run_case

FILE = load(Path(__file__).parents[2] / "modules" / "file.py")
ROW: dict[str, Any] = {
    "what": "a file is written",
    "args": {"path": "{tmp}/x", "content": "new"},
    "files": {"{tmp}/x": "old"},
    "review": "unknown",
    "verdict": "will_change",
    "leaves": {"{tmp}/x": "new", "{tmp}/y": None},
}


def test_a_row_holds_in_both_worlds(tmp_path: Path) -> None:
    """The same row, with files in memory and on the disk."""
    assert run_case(FILE, ROW, FakeWorld()).changed
    assert run_case(FILE, Case(**ROW), RealWorld(tmp_path)).changed


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("verdict", "no_change", "the verdict: 'will_change', expected 'no_change'"),
        ("because", "sunshine", "expected a text with 'sunshine'"),
        ("failure", "permanent", "expected 'permanent'"),
        ("fault", "user", "the fault: None"),
        ("says", "sunshine", "the sentence: ''"),
        ("skipped", True, "skipped: False"),
        ("values", {"a": 1}, "the values"),
        ("exported", {"A": "1"}, "the environment"),
        ("leaves", {"{tmp}/x": "old"}, "'new', expected 'old'"),
        ("review", "no_change", "the review's verdict"),
    ],
)
def test_what_a_row_says_is_compared(key: str, value: Any, says: str) -> None:
    """Each key that does not hold fails the row, with what was and what was expected."""
    with pytest.raises(AssertionError, match=says):
        run_case(FILE, {**ROW, key: value}, FakeWorld())


def test_a_key_that_means_nothing_fails() -> None:
    """A slip in a key is no silent pass."""
    with pytest.raises(AssertionError, match="did you mean 'verdict'"):
        run_case(FILE, {**ROW, "verdikt": "no_change"}, FakeWorld())
