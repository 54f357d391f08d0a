"""Terminal escape codes."""

from __future__ import annotations

ESCAPE = (
    r"\x1b(?:\[[0-?]{0,64}[ -/]{0,16}(?:[@-~]|\Z)"
    r"|[ -/]{1,16}(?:[0-~]|\Z)"
    r"|\][^\x07\x1b]{0,500}(?:\x07|\x1b\\|\x1b?\Z)"
    r"|[0-Z\\-~]|\Z)"
)
"""A regular expression for one escape code, complete or cut off by the end of the text (ECMA-48 5.3
and 5.4, ISO 2022, and xterm's titles)."""


def visible(text: str) -> str:
    """Replace control and format characters in an untrusted text, so that a terminal shows all."""
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text
    )
