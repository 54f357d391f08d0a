"""Prints lines for people: whether a stream takes colours, its width, what is masked."""

from __future__ import annotations

import os
import shutil
from typing import IO

from pairun.base.escapes import visible
from pairun.secrets.vault import Vault

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
        codes = ";".join(str(_CODES[name]) for name in names if name)
        return f"\033[{codes}m{text}\033[0m" if self.on and codes else text


class Printer:
    """Prints lines of plain text; containers have no other library for it.

    Args:
        stream: the stream to print to.
        vault: masks what is printed; by default it is masked already.

    Attributes:
        style: colours texts.
    """

    def __init__(self, stream: IO[str], vault: Vault | None = None) -> None:
        self._stream = stream
        self._mask = vault.text if vault else str
        self.style = Tint(stream)

    def line(self, text: str = "", *colors: str) -> None:
        """Print one line."""
        self._stream.write(self.style(self._mask(text).rstrip(), *colors) + "\n")

    def wrapped(self, text: str, indent: str = "", color: str = "", hang: str = "") -> None:
        """Wrap and print a text."""
        # Mask before wrapping, because a line break may split a secret.
        text, width = visible(self._mask(text)), self.style.width - len(indent) - len(hang)
        for n, part in enumerate(_wrapped(text, max(30, width))):
            self._stream.write(f"{indent}{hang * (n > 0)}{self.style(part, color)}\n")


def _wrapped(text: str, width: int) -> list[str]:
    if len(text) <= width and text.isprintable():
        return [text.rstrip(" ")]
    import textwrap  # 1 ms, and most lines fit

    return textwrap.wrap(text, width, break_on_hyphens=False) or [""]
