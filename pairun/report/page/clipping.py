"""Makes foreign texts fit for a page: on one line, with a limited length."""

from __future__ import annotations

from typing import Any

from pairun.report.journal.records import describe

MAX_TEXT = 2000
"""The limit for one text, in characters."""


def clip(value: Any) -> str:
    """Return a text that is safe to show, with a limited length."""
    text = describe(value)
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"
