"""A stream for people as `rich` writes on it: its width, and whether it takes colours."""

from __future__ import annotations

import os
from typing import IO, Literal

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.theme import Theme

WIDTH = 100
"""Columns where there is no terminal."""

OUTCOMES = {
    "ok": "green", "changed": "yellow", "skipped": "dim", "ignored": "cyan", "retry": "yellow",
    "failed": "red",
}  # fmt: skip


class Paper(Console):
    """A console that obeys nothing in foreign texts, and leaves a broken pipe to its caller."""

    def on_broken_pipe(self) -> None:
        """Raise what writing raised."""
        raise  # noqa: PLE0704  # rich calls this in its handler of BrokenPipeError


def paper(stream: IO[str], color: str = "auto") -> Paper:
    """A console on a stream.

    Args:
        stream: where to print.
        color: ``auto`` colours on a terminal unless ``NO_COLOR`` is set (no-color.org),
            ``always`` and ``never`` do as they say.
    """
    terminal = stream.isatty() and os.environ.get("TERM") != "dumb"
    on = color == "always" or (color == "auto" and terminal and "NO_COLOR" not in os.environ)
    system: Literal["auto", "standard"] | None = "standard" if on else None
    return Paper(
        file=stream,
        color_system=system,
        no_color=not on,
        force_terminal=terminal or on,
        force_interactive=terminal,
        legacy_windows=False,
        width=None if terminal else WIDTH,
        markup=False,
        emoji=False,
        highlight=False,
        theme=Theme(OUTCOMES),
    )


class Trimmed:
    """A renderable without blanks at the ends of lines, which a narrower terminal would wrap."""

    def __init__(self, inner: RenderableType) -> None:
        self._inner = inner

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render the inner one line by line."""
        for line in console.render_lines(self._inner, options, pad=False):
            while line and not line[-1].text.strip():
                line.pop()
            if line:
                text, style, control = line.pop()
                line.append(Segment(text.rstrip(), style, control))
            yield from line
            yield Segment.line()
