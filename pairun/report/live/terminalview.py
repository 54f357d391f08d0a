"""The view on a terminal: output above, and a foot that shows what every instance does."""

from __future__ import annotations

import contextlib
import os
import signal
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import FrameType
from typing import IO

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.segment import Segment
from rich.style import Style
from rich.table import Table
from rich.text import Text

from pairun.base.durations import shown_duration
from pairun.report.live.view import COMMAND_ACTIVITY, Activity, Standing, View, clean, outcome_of
from pairun.report.paper import Trimmed, paper
from pairun.secrets.vault import Vault

_COLORS = (
    "cyan", "magenta", "blue", "green", "yellow", "bright_cyan", "bright_magenta", "bright_blue",
    "bright_green", "bright_yellow",
)  # fmt: skip
"""The colours of instances, in order."""

MANY = 12
"""With more instances, a line that several print at once is shown once."""

MOST_PENDING = 2000
"""How many lines to show at once: a limit for the memory that a flood of output needs."""


class TerminalView(View):
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
        super().__init__(stream, labels, vault)
        self.moves = moves
        self._console = paper(stream, color)
        self._styles = {each: _COLORS[n % len(_COLORS)] for n, each in enumerate(labels)}
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
            self._styles.setdefault(each.label, _COLORS[len(self._styles) % len(_COLORS)])
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


BAR_WIDTH = 16
LEAST_TASK = 12
"""How many columns of a task's name to show before its details."""

MOST_LINES = 12
"""More lines are not useful, however tall the screen is."""


def foot(
    standing: Standing, styles: Mapping[str, str], console: Console, vault: Vault
) -> RenderableType:
    """Build the foot for the size of a terminal.

    Args:
        standing: the state of the job.
        styles: the colour of each instance.
        console: the console, for its size.
        vault: masks every text.
    """
    room = min(MOST_LINES, max(2, console.height // 3))
    shown, quiet = _chosen(standing.running, room)
    grid = Table.grid(padding=(0, 2, 0, 0))
    bars = any(a.done is not None for a in shown)
    for width in _widths(shown, console.width, bars=bars):
        grid.add_column(no_wrap=True, overflow="ellipsis", width=width)
    for each in shown:
        tone = "yellow" if each.troubled else ""
        cells: list[RenderableType] = [
            Text(vault.text(each.label), style=styles.get(each.label, "")),
            Text(each.phase, style="dim"),
            Text(vault.text(each.doing), style="bold"),
            Text(vault.text(each.detail), style=tone),
        ]
        if bars:
            cells.append(_bar(each))
        grid.add_row(*cells, Text(_time(each), style="dim"))
    lines: list[RenderableType] = [grid] if shown else []
    if quiet:
        lines.append(Text(_counted(quiet), style="dim", no_wrap=True, overflow="ellipsis"))
    lines.append(_totals(standing))
    return Trimmed(Group(*lines))


def _chosen(
    running: Sequence[Activity], room: int
) -> tuple[Sequence[Activity], Sequence[Activity]]:
    """The instances that get a line, and those to count; in the order of the job."""
    if len(running) <= room:
        return running, ()
    ranked = sorted(range(len(running)), key=lambda n: (_rank(running[n]), n))
    chosen = set(ranked[: room - 1])
    return (
        [a for n, a in enumerate(running) if n in chosen],
        [a for n, a in enumerate(running) if n not in chosen],
    )


def _rank(activity: Activity) -> int:
    """Trouble first, then long transfers, tasks, and last commands, whose output is visible."""
    if activity.troubled:
        return 0
    if activity.done is not None:
        return 1
    return 3 if activity.doing == COMMAND_ACTIVITY else 2


def _counted(quiet: Sequence[Activity]) -> str:
    counts = Counter(f"{a.phase} {a.doing}" for a in quiet)
    most = ", ".join(f"{count} {what}" for what, count in counts.most_common(3))
    more = ", …" if len(counts) > 3 else ""
    return f"and {len(quiet)} more: {most}{more}"


def _widths(shown: Sequence[Activity], columns: int, *, bars: bool) -> list[int]:
    """The width of each column; tasks and details are cut if there is no room, times are not."""

    def longest(texts: Iterable[str]) -> int:
        return max(map(cell_len, texts), default=0)

    label = min(longest(a.label for a in shown), max(8, columns // 3))
    phase, time = longest(a.phase for a in shown), longest(map(_time, shown))
    room = columns - sum(2 + n for n in (label, phase, time)) - (2 + BAR_WIDTH) * bars - 4
    doing, detail = longest(a.doing for a in shown), longest(a.detail for a in shown)
    detail = max(1, min(detail, room - min(doing, LEAST_TASK)))
    doing = max(1, min(doing, room - detail))
    return [label, phase, doing, detail, *([BAR_WIDTH] if bars else []), time]


def _time(activity: Activity) -> str:
    return ", ".join(filter(None, (activity.amount, activity.time)))


def _bar(activity: Activity) -> RenderableType:
    if activity.done is None:
        return Text("")
    if not activity.total:
        return ProgressBar(total=None, width=BAR_WIDTH, pulse=True)
    return ProgressBar(total=activity.total, completed=activity.done, width=BAR_WIDTH)


def _totals(standing: Standing) -> Text:
    """The last line: how many instances run, how many ended, for how long."""
    text = Text(no_wrap=True, overflow="ellipsis")
    text.append(f"{len(standing.running)} of {standing.total} running", style="bold")
    if standing.succeeded:
        text.append(f", {standing.succeeded} succeeded", style="green")
    if standing.failed:
        text.append(f", {standing.failed} failed", style="red")
    text.append(f"  {shown_duration(int(standing.seconds))}", style="dim")
    return text
