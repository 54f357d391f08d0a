"""A review as text: what is wrapped, cut or coloured shows no part of a secret."""

from __future__ import annotations

import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairun.report.review_text import ReviewText
from pairun.report.shown import shown_data
from pairun.secrets.vault import Vault
from tests.effort import cases

SECRETS = st.lists(st.text("QXZ", min_size=2, max_size=12), min_size=2, max_size=9).map(" ".join)
"""Of words, so that a line may end within; no other text here has these letters."""


@given(secret=SECRETS, before=st.integers(0, 90), after=st.integers(0, 30), hang=st.integers(0, 4))
@settings(max_examples=cases(200))
def test_a_secret_that_would_be_wrapped(secret: str, before: int, after: int, hang: int) -> None:
    """Wherever the line ends, no word of the secret shows."""
    out = io.StringIO()
    text = f"{'word ' * (before // 5)}{'-' * (before % 5)}{secret}{' word' * after}"
    ReviewText(out, Vault([secret])).wrapped(text, "  ", hang=" " * hang)
    assert not set(out.getvalue()) & set("QXZ")
    assert out.getvalue().count("word") == before // 5 + after


@pytest.mark.parametrize("length", [30, 150, 190, 199, 200, 250])
def test_a_value_that_is_cut(length: int) -> None:
    """A long argument is cut after it was masked."""
    secret = "QXZ" * 40
    out = io.StringIO()
    vault = Vault([secret])
    shown = shown_data(["y" * length + secret], vault)
    ReviewText(out, vault)._value("argument", shown, "  ")
    assert not set(out.getvalue()) & set("QXZ")


def test_a_task_without_a_name_leaves_no_blanks() -> None:
    """Its id stands alone, or before its origin."""
    out = io.StringIO()
    text = ReviewText(out, Vault())
    text.head("    ", ("~", "yellow"), "a_task_with_a_long_id", "")
    text.head("    ", ("~", "yellow"), "link", "", "job: x.yaml:3:5")
    lines = out.getvalue().splitlines()
    assert lines == ["    ~ a_task_with_a_long_id", f"    ~ {'link':18} (job: x.yaml:3:5)"]
