"""Where the time of a run went, as text."""

from __future__ import annotations

from collections.abc import Sequence

from pairun.module import format_duration
from pairun.report.journal.blame import Cost, PhaseBlame, Slowest, blame, slowest
from pairun.report.journal.pastinstances import InstancePast
from pairun.report.journal.records import describe
from pairun.report.journal.text import JournalText, duration
from pairun.report.shown import fit

MOST_COSTS = 30
"""How many tasks of a phase to list; the others are summed up."""

_MOST_PARTS = 4
_BAR = 20


def print_blame(text: JournalText, instances: Sequence[InstancePast]) -> None:
    """Print where the slowest instance spent its time, then the slowest instance of each task."""
    begun = [i for i in instances if i.phases]
    if not begun:
        text.line("no task, attempt or wait is recorded")
        return
    first = max(begun, key=lambda i: i.seconds)
    among = f", the slowest of {len(begun)} instances" if len(begun) > 1 else ""
    label = text.style(describe(first.label), "bold")
    text.line(f"{label}{among}: {format_duration(first.seconds)}")
    for phase in first.phases:
        _phase(text, blame(phase))
    if len(begun) > 1:
        text.line()
        _slowest(text, slowest(begun))


def _phase(text: JournalText, blame: PhaseBlame) -> None:
    total = duration(blame.seconds, measured=blame.measured)
    text.line(f"  {text.style(blame.title, 'bold')}: {total}")
    width = min(40, max((len(describe(c.id)) for c in blame.costs[:MOST_COSTS]), default=0))
    width = max(width, len("pairun and idle"))
    rest = blame.costs[MOST_COSTS:]
    for cost in blame.costs[:MOST_COSTS]:
        _cost(text, cost, width)
    if rest:
        time = format_duration(sum(c.seconds for c in rest))
        text.line(f"    … and {len(rest)} more, {time} altogether", "dim")
    share = blame.overhead_s / blame.seconds if blame.seconds else 0.0
    _row(text, "pairun and idle", blame.overhead_s, share, width)
    dear = {c.id for c in blame.costs if c.share >= 0.01 and c.beside is None}
    path = [describe(id_) for id_ in blame.path if id_ in dear]
    if len(path) > 1:
        text.wrapped(f"path: {' > '.join(path[:MOST_COSTS])}", "    ", "dim")


def _cost(text: JournalText, cost: Cost, width: int) -> None:
    notes = [] if cost.kind == "task" else [cost.kind]
    if cost.beside is not None:
        notes.append(f"beside {describe(cost.beside)}, which took longer")
    if not cost.measured:
        notes.append("about")
    _row(text, describe(cost.id), cost.seconds, cost.share, width, ", ".join(notes))
    if cost.attempts < 2:
        return
    for part in cost.parts[:_MOST_PARTS]:
        outcome = f" {describe(part.outcome)}" if part.outcome else ""
        text.line(f"      {format_duration(part.seconds):>9}  {part.what}{outcome}", "dim")
    if more := cost.parts[_MOST_PARTS:]:
        time = format_duration(sum(p.seconds for p in more))
        text.line(f"      {time:>9}  {len(more)} more attempts and waits", "dim")


def _row(
    text: JournalText, name: str, seconds: float, share: float, width: int, note: str = ""
) -> None:
    bar = "#" * round(_BAR * min(1.0, share))
    # a task next to a longer one costs no time, so its bar is an outline
    bar = bar.replace("#", "-") if note.startswith("beside") else bar
    text.line(
        f"    {fit(name, width):{width}} {format_duration(seconds):>9} {share:>6.1%} "
        f"{bar:{_BAR}} {note}"
    )


def _slowest(text: JournalText, tasks: Sequence[Slowest]) -> None:
    shown = tasks[:MOST_COSTS]
    rows = [("task", "slowest", "took", "median", "of")]
    rows += [
        (
            f"{describe(s.phase)} {describe(s.task)}", describe(s.label),
            format_duration(s.seconds), format_duration(s.median_s), str(s.instances),
        )
        for s in shown
    ]  # fmt: skip
    widths = [min(40, max(len(row[n]) for row in rows)) for n in range(5)]
    for n, row in enumerate(rows):
        cells = [f"{fit(cell, w):{w}}" for cell, w in zip(row, widths, strict=True)]
        text.line("  " + "  ".join(cells), *(("dim",) if n == 0 else ()))
    if more := len(tasks) - len(shown):
        text.line(f"  … and {more} more", "dim")
