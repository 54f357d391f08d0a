"""What a server says about asking again: its status, and its ``Retry-After``."""

from __future__ import annotations

import re

_WORTH_A_RETRY = {408, 425, 429}


def is_worth_a_retry(status: int) -> bool:
    """Whether the same request may be answered differently later.

    408 and 429 say so themselves (RFC 9110, 15.5.9; RFC 6585, 4), and so does 425: the server
    refuses a request only because it came too early (RFC 8470, 5.2). Every 5xx is the server's own
    trouble (RFC 9110, 15.6). A 410 is not: the resource is gone, likely for good (RFC 9110,
    15.5.11). At the API server 410 has a meaning of its own; see `pairun.net.apianswers`.

    Args:
        status: of the answer.
    """
    return status in _WORTH_A_RETRY or status >= 500


def retry_after_s(text: str | None, now: float) -> float | None:
    """The seconds that a ``Retry-After`` asks for (RFC 9110, 10.2.3).

    Args:
        text: the header's value, seconds or a date; None where there is none.
        now: seconds since the epoch.

    Returns:
        None where there is no value, or none that can be read.
    """
    text = (text or "").strip()
    if re.fullmatch("[0-9]{1,9}", text):
        return float(text)
    date = http_date_s(text) if text else None
    return None if date is None else max(0.0, date - now)


def http_date_s(text: str) -> float | None:
    """A date of HTTP (RFC 9110, 5.6.7) as seconds since the epoch, or None where it is none."""
    # It takes as long to import as all else that a module needs.
    import email.utils

    try:
        return email.utils.parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
