"""Adds terminal colour codes to a text; the bundle does not contain this file."""

from __future__ import annotations

from rich.color import ColorSystem
from rich.style import Style


def colored(text: str, *names: str) -> str:
    """Return a text in the named colours; rich defines the names."""
    return Style.parse(" ".join(names)).render(text, color_system=ColorSystem.STANDARD)
