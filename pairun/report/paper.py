"""A `rich` console on a stream for people: its width, and whether to print colours."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import IO, Literal

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.table import Table
from rich.text import Text
from rich.theme import Theme

from pairun.report.tint import is_terminal, takes_color

WIDTH = 100
"""The width without a terminal, in columns."""

OUTCOMES = {
    "ok": "green", "changed": "yellow", "skipped": "dim", "ignored": "cyan", "retry": "yellow",
    "failed": "red",
}  # fmt: skip

UNBOUNDED = 1 << 16
"""The width that avoids wrapping, for programs that read the lines; in columns."""


class Paper(Console):
    """A console that interprets no foreign text, and leaves a broken pipe to its caller."""

    def on_broken_pipe(self) -> None:
        """Raise the error of the write again."""
        raise  # noqa: PLE0704  # rich calls this in its handler of BrokenPipeError


def paper(stream: IO[str], color: str = "auto") -> Paper:
    """Open a console on a stream.

    Args:
        stream: where to print.
        color: as in `takes_color`.
    """
    terminal, on = is_terminal(stream), takes_color(stream, color)
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


def print_table(console: Paper, headers: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table; on a terminal the last column wraps at words, elsewhere nothing wraps.

    Args:
        console: where to print.
        headers: of the columns.
        rows: the texts of each row, printed unchanged.
    """
    if not console.is_terminal:
        # rich takes half a millisecond for each row, and a job may have 10,000.
        lines = [tuple(headers), *map(tuple, rows)]
        widths = [max(map(cell_len, column)) for column in zip(*lines, strict=True)]
        for line in lines:
            cells = zip(line, widths, strict=True)
            padded = "  ".join(cell + " " * (width - cell_len(cell)) for cell, width in cells)
            console.file.write(f"{padded.rstrip()}\n")
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for n, header in enumerate(headers, 1):
        table.add_column(header, no_wrap=n < len(headers), overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(Trimmed(table), end="")


class Trimmed:
    """A renderable without trailing blanks, which a narrower terminal would wrap."""

    def __init__(self, inner: RenderableType) -> None:
        self._inner = inner

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render the inner renderable line by line."""
        for line in console.render_lines(self._inner, options, pad=False):
            while line and not line[-1].text.strip():
                line.pop()
            if line:
                text, style, control = line.pop()
                line.append(Segment(text.rstrip(), style, control))
            yield from line
            yield Segment.line()
