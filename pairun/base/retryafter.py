"""Whether and when to retry a request: by its status and by ``Retry-After``."""

from __future__ import annotations

import re

_WORTH_A_RETRY = {408, 425, 429}


def is_worth_a_retry(status: int) -> bool:
    """Whether the same request may get another response later.

    408 and 429 invite a retry (RFC 9110, 15.5.9; RFC 6585, 4). So does 425, which reports that the
    request came too early (RFC 8470, 5.2). A 5xx is an error of the server (RFC 9110, 15.6). After
    a 410 the resource is gone, probably permanently (RFC 9110, 15.5.11). The API server uses 410
    differently; see `pairun.net.apianswers`.
    """
    return status in _WORTH_A_RETRY or status >= 500


def retry_after_s(text: str | None, now: float) -> float | None:
    """The seconds in a ``Retry-After`` header (RFC 9110, 10.2.3).

    Args:
        text: the header's value, seconds or a date; None if it is missing.
        now: seconds since the epoch.

    Returns:
        The seconds, or None if the header is missing or invalid.
    """
    text = (text or "").strip()
    if re.fullmatch("[0-9]{1,9}", text):
        return float(text)
    date = http_date_s(text) if text else None
    return None if date is None else max(0.0, date - now)


def http_date_s(text: str) -> float | None:
    """An HTTP date (RFC 9110, 5.6.7) as seconds since the epoch; None if it is invalid."""
    # This import takes as long as all others of a module together.
    import email.utils

    try:
        return email.utils.parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
