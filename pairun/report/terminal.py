"""Colours and widths for a terminal; no colours elsewhere, or with ``NO_COLOR``."""

from __future__ import annotations

import os
import shutil
from typing import IO

_CODES = {
    "red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36", "dim": "2", "bold": "1"
}  # fmt: skip


class Style:
    """Colours texts, if the stream is a terminal.

    Args:
        stream: the stream to print to.
        color: whether to colour; ``None`` decides by the stream and the environment (no-color.org).
    """

    def __init__(self, stream: IO[str], color: bool | None = None) -> None:
        self.on = (
            stream.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
            if color is None
            else color
        )
        self.width = min(max(shutil.get_terminal_size((100, 24)).columns, 60), 120)

    def __call__(self, text: str, *names: str) -> str:
        """Return the text in the named colours."""
        if not self.on or not names:
            return text
        return f"\033[{';'.join(_CODES[n] for n in names)}m{text}\033[0m"


def fit(text: str, width: int) -> str:
    """Cut a text to ``width`` characters; an ellipsis marks the cut."""
    return text if len(text) <= width else text[: max(0, width - 1)] + "…"


def visible(text: str) -> str:
    """Replace control characters in a foreign text."""
    return "".join(
        c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text
    )
