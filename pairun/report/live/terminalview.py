"""The view on a terminal: output above, and a foot that shows what every instance does."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import IO

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.segment import Segment
from rich.style import Style
from rich.text import Text

from pairun.report.live.foot import foot
from pairun.report.live.outputline import clean, outcome_of
from pairun.report.live.view import Standing
from pairun.report.paper import paper
from pairun.secrets.vault import Vault

COLORS = (
    "cyan", "magenta", "blue", "green", "yellow", "bright_cyan", "bright_magenta", "bright_blue",
    "bright_green", "bright_yellow",
)  # fmt: skip
"""The colours of instances, in order."""

MANY = 12
"""With more instances, a line that several print at once is shown once."""

MOST_PENDING = 2000
"""How many lines to show at once: a limit for the memory that a flood of output needs."""


class TerminalView:
    """Shows lines as they arrive, and the foot.

    Args:
        stream: a terminal; a file or a pipe gets only the lines.
        labels: the names of all instances.
        vault: masks the view's own texts.
        color: ``auto``, ``always`` or ``never``.
        moves: whether to show the foot.
    """

    interval_s = 0.1

    def __init__(
        self, stream: IO[str], labels: Sequence[str], vault: Vault, *, color: str, moves: bool
    ) -> None:
        self.lost: OSError | None = None
        self.moves = moves
        self._stream = stream
        self._vault = vault
        self._console = paper(stream, color)
        self._styles = {each: COLORS[n % len(COLORS)] for n, each in enumerate(labels)}
        self._merges = len(labels) > MANY
        self._width = max(map(len, labels), default=0) + len(" +00") * self._merges
        self._pending: list[tuple[str, str]] = []
        self._standing = Standing(running=())
        self._suspend = False
        # No refresh thread: the engine forks, so there must be only one thread.
        self._live = Live(
            console=self._console,
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._old_handler = signal.signal(signal.SIGTSTP, self._on_suspend) if moves else None

    def output(self, label: str, line: bytes) -> None:
        """Add a line; the next refresh shows it."""
        self._pending.append((label, clean(line)))
        if len(self._pending) >= MOST_PENDING:
            self.refresh(self._standing)

    def note(self, line: str) -> None:
        """Add a line; the next refresh shows it."""
        self._pending.append(("", self._vault.text(line)))

    def refresh(self, standing: Standing) -> None:
        """Show the lines and the foot; does nothing if the terminal is gone."""
        self._standing = standing
        for each in standing.running:
            self._styles.setdefault(each.label, COLORS[len(self._styles) % len(COLORS)])
        if self._suspend:
            self._stop_here()
        lines, self._pending = self._pending, []
        if self.lost is not None:
            return
        if self._merges:
            lines = _merged(lines)
        try:
            self._show(lines)
        except OSError as e:
            self.lost = e
            self._console.quiet = True

    def close(self) -> None:
        """Show the remaining lines, remove the foot, and show the cursor."""
        lines, self._pending = self._pending, []
        with contextlib.suppress(OSError):
            self._live.stop()
            if lines and self.lost is None:
                self._console.print(_Lines(lines, self._styles, self._width))
        if self._old_handler is not None:
            signal.signal(signal.SIGTSTP, self._old_handler)
            self._old_handler = None

    def _show(self, lines: Sequence[tuple[str, str]]) -> None:
        if self.moves and self._is_in_foreground():
            self._live.update(foot(self._standing, self._styles, self._console, self._vault))
            self._live.start()
        else:
            self._live.stop()
        if lines:
            self._console.print(_Lines(lines, self._styles, self._width), end="")
        elif self._live.is_started:
            self._live.refresh()

    def _is_in_foreground(self) -> bool:
        """Whether the shell lets us draw; true if the terminal has no shell."""
        try:
            return os.tcgetpgrp(self._stream.fileno()) == os.getpgrp()
        except OSError:
            return True

    def _on_suspend(self, number: int, frame: FrameType | None) -> None:
        self._suspend = True

    def _stop_here(self) -> None:
        """Restore the terminal and stop this process, as Ctrl-Z asks; returns once continued."""
        self._suspend = False
        with contextlib.suppress(OSError):
            self._live.stop()
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, self._on_suspend)


def _merged(lines: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Merge equal lines of several instances, with how many more printed them."""
    labels: dict[str, dict[str, None]] = {}
    for label, text in lines:
        labels.setdefault(text, {})[label] = None
    merged, shown = [], set()
    for label, text in lines:
        more = len(labels[text]) - 1
        if more < 2 or not text or not label:
            merged.append((label, text))
        elif text not in shown:
            shown.add(text)
            merged.append((f"{label} +{more}", text))
    return merged


class _Lines:
    """Lines of output, each after its instance's name, wrapped at words.

    Args:
        lines: instance and text of each; no instance for a line about the job.
        styles: the colour of each instance.
        width: the length of the longest name.
    """

    def __init__(
        self, lines: Sequence[tuple[str, str]], styles: dict[str, str], width: int
    ) -> None:
        self._lines = lines
        self._styles = styles
        self._width = width

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render a line that fits as plain segments, for speed."""
        # A long name must leave room for the text.
        width = min(self._width, max(8, options.max_width // 3))
        room = max(10, options.max_width - width - 3) if console.is_interactive else 1 << 30
        for label, text in self._lines:
            name = label if len(label) <= width else f"{label[: width - 4]}…{label[-3:]}"
            style = Style.parse(self._styles.get(label.partition(" ")[0], "none"))
            outcome = outcome_of(text) if label else ""
            for number, part in enumerate(_wrapped(text, room, console)):
                if label:
                    yield Segment(f"{'' if number else name:<{width}} | ", style)
                if outcome and not number:
                    yield Segment(text[: len(outcome)], console.get_style(outcome))
                    part = part[len(outcome) :]  # noqa: PLW2901
                dim = label and text.startswith("[pairun] ")
                yield Segment(part, Style(dim=True) if dim else None)
                yield Segment.line()


def _wrapped(text: str, room: int, console: Console) -> Iterator[str]:
    if cell_len(text) <= room:
        yield text
        return
    for line in Text(text).wrap(console, room):
        yield line.plain
