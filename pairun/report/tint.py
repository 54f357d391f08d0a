"""Whether a stream takes colours, and coloured texts."""

from __future__ import annotations

import importlib.util
import os
import shutil
from typing import IO


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
        # The bundle does not contain rich.
        self.on = takes_color(stream) and importlib.util.find_spec("rich") is not None
        self.width = min(max(shutil.get_terminal_size((100, 24)).columns, 60), 120)

    def __call__(self, text: str, *names: str) -> str:
        """Return a text in the named colours; rich defines the names."""
        if not self.on or not names:
            return text
        # imported here, because most output has no colours
        from pairun.report.ansi import colored

        return colored(text, *names)
