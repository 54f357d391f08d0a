"""The foot of the screen: a line for each running instance, as many as fit, and the totals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from pairun.base.durations import format_duration
from pairun.report.live.activity import COMMAND, Activity, spaced
from pairun.report.live.view import Standing
from pairun.report.paper import Trimmed
from pairun.secrets.vault import Vault

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
    return 3 if activity.doing == COMMAND else 2


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
    text.append(f"  {spaced(format_duration(int(standing.seconds)))}", style="dim")
    return text
