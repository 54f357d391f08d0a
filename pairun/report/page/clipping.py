"""Foreign texts for a page: on one line, of bounded length."""

from __future__ import annotations

from typing import Any

from pairun.report.journal.records import describe

MAX_TEXT = 2000
"""How many characters of one text are on the page."""


def clip(value: Any) -> str:
    """A text safe to show, of bounded length."""
    text = describe(value)
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"
