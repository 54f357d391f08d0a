"""Lines of output for people."""

from __future__ import annotations

import pytest

from pairun.report.live.view import clean, is_progress, is_skipped_by_condition, outcome_of


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (b"plain", "plain"),
        (b"\033[1;31mred\033[0m and \033]0;title\007more", "red and more"),
        (b" 10%\r 20%\r 30%", " 30%"),
        (b" 10%\r\r", " 10%"),
        (b"a\tb", "a       b"),
        ("\N{RIGHT-TO-LEFT OVERRIDE}x".encode(), "\N{REPLACEMENT CHARACTER}x"),
        (b"\xff\x00\x9b2J", "\N{REPLACEMENT CHARACTER}" * 3 + "2J"),
        ("日本 é".encode(), "日本 é"),
        (b"[bold]x[/bold]", "[bold]x[/bold]"),
        (b"cut \033[3", "cut "),
    ],
)
def test_nothing_in_a_line_is_obeyed(line: bytes, text: str) -> None:
    """Escape codes are gone, and what else a terminal obeys is replaced."""
    assert clean(line) == text


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("ok       git: The code (1s)", "ok"),
        ("changed  git", "changed"),
        ("retry    git: attempt 1", "retry"),
        ("ok then", ""),
        ("failed", ""),
        ("  git | ok       x", ""),
    ],
)
def test_outcomes_are_known_by_their_column(text: str, outcome: str) -> None:
    """A line of the user's command that begins with such a word is left alone."""
    assert outcome_of(text) == outcome


def test_progress_is_known() -> None:
    assert is_progress("progress get: x.tar 1.5 GiB of 3 GiB (50 %)")
    assert is_progress("progress get: 12 bytes")
    assert not is_progress("progress is good: 12 of 13")


def test_a_task_that_its_condition_skips() -> None:
    assert is_skipped_by_condition("skipped  mount_storage: its condition is false")
    assert not is_skipped_by_condition("skipped  notify: no token is mounted")
