"""A text with the codes of terminals around it; the bundle is made without this file."""

from __future__ import annotations

from rich.color import ColorSystem
from rich.style import Style


def colored(text: str, *names: str) -> str:
    """Return a text in the named colours, as rich calls them."""
    return Style.parse(" ".join(names)).render(text, color_system=ColorSystem.STANDARD)
