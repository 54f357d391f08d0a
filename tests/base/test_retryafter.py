"""Statuses worth a retry, and the two forms of Retry-After."""

from __future__ import annotations

import email.utils

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairun.base.retryafter import http_date_s, is_worth_a_retry, retry_after_s

NOW = 1_700_000_000.0


@pytest.mark.parametrize(
    ("status", "worth"),
    [(200, False), (302, False), (400, False), (401, False), (403, False), (404, False),
     (408, True), (409, False), (410, False), (425, True), (429, True), (500, True), (503, True)],
)  # fmt: skip
def test_which_statuses_are_worth_a_retry(status: int, worth: bool) -> None:
    """What asks for a retry, and trouble of the server."""
    assert is_worth_a_retry(status) is worth


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        (None, None),
        ("", None),
        ("0", 0.0),
        (" 120 ", 120.0),
        ("1.5", None),
        ("-1", None),
        ("1234567890", None),
        ("soon", None),
        ("٣", None),
        (email.utils.formatdate(NOW + 90, usegmt=True), 90.0),
        (email.utils.formatdate(NOW - 90, usegmt=True), 0.0),
        ("Tue, 99 Jan 2019 00:00:00 GMT", None),
        ("1 Jan 99999 00:00", None),
    ],
)
def test_seconds_and_dates(text: str | None, seconds: float | None) -> None:
    """Both forms count, a date that is over as nothing; what is neither is ignored."""
    assert retry_after_s(text, NOW) == seconds


@given(st.text(max_size=60))
def test_no_header_is_too_strange(text: str) -> None:
    """Whatever a server sends, a number that is not negative or nothing comes of it."""
    seconds = retry_after_s(text, NOW)
    assert seconds is None or seconds >= 0


@pytest.mark.parametrize("text", ["", "x", "Tue, 99 Jan 2019 00:00:00 GMT", "1 Jan 99999 00:00"])
def test_what_only_looks_like_a_date(text: str) -> None:
    """It breaks nothing."""
    assert http_date_s(text) is None
