"""Whether a stream takes colours, and coloured texts."""

from __future__ import annotations

import os
import shutil
from typing import IO

_CODES = {
    "bold": 1, "dim": 2, "red": 31, "green": 32, "yellow": 33, "blue": 34, "magenta": 35, "cyan": 36,
}  # fmt: skip
"""Select Graphic Rendition (ECMA-48, section 8.3.117)."""


def is_terminal(stream: IO[str]) -> bool:
    """Whether a stream is a terminal that supports codes."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def takes_color(stream: IO[str], color: str = "auto") -> bool:
    """Whether to print colours on a stream.

    Args:
        stream: where to print.
        color: ``auto`` colours on a terminal unless ``NO_COLOR`` is set (no-color.org),
            ``always`` and ``never`` do as they say.
    """
    if color == "auto":
        return is_terminal(stream) and "NO_COLOR" not in os.environ
    return color == "always"


class Tint:
    """Colours texts if the stream takes colours.

    Args:
        stream: the stream to print to.

    Attributes:
        on: whether it takes colours.
        width: the terminal's width in columns, within bounds that pairun's texts need.
    """

    def __init__(self, stream: IO[str]) -> None:
        self.on = takes_color(stream)
        self.width = min(max(shutil.get_terminal_size((100, 24)).columns, 60), 120)

    def __call__(self, text: str, *names: str) -> str:
        """Return a text in the named colours."""
        if not self.on or not names:
            return text
        return f"\033[{';'.join(str(_CODES[name]) for name in names)}m{text}\033[0m"
