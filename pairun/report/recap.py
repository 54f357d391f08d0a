"""The recap of a local run: how each instance ended, and why."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence

import attrs
from rich.console import Console, Group, RenderableType
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from pairun.base.escapes import visible
from pairun.module import format_duration
from pairun.report.journal.runoutcome import although
from pairun.report.live.activity import spaced
from pairun.report.paper import UNBOUNDED, Trimmed
from pairun.report.runnotes import first_failure_in, notes_on, records_of
from pairun.report.runsummary import InstanceReport, PhaseReport, RunReport
from pairun.secrets.vault import Vault

MOST_ROWS = 12
"""With more instances, those with the same result share a row."""

_COUNTED = ("ok", "changed", "skipped", "ignored", "failed")


def print_run(report: RunReport, console: Console, vault: Vault) -> None:
    """Print the recap of a run.

    Args:
        report: the facts.
        console: where to print.
        vault: masks every text before it is wrapped.
    """
    rows = _rows(report.instances)
    parts: list[RenderableType] = [
        _text(vault, _mode(report), style="dim"),
        _table(rows, console, vault),
    ]
    if any(row.notes for row in rows):
        parts.append(_notes_of(rows, vault))
    parts += _ending(report, vault)
    if console.is_terminal:
        # an empty line after the output
        console.print()
    console.print(Trimmed(Group(*parts)), end="")


@attrs.frozen(kw_only=True)
class _Row:
    """Instances with the same result.

    Attributes:
        label: the first instance, and how many more.
        counts: how many tasks had which outcome; a failed command counts, too.
        phases: how init and the command ended.
        failed: whether they failed on their own.
        notes: further notes.
    """

    label: str
    counts: Counter[str]
    phases: tuple[str, str]
    failed: bool
    notes: Sequence[str]


def _mode(report: RunReport) -> str:
    images = ", ".join(dict.fromkeys(report.images))
    plural = "s" if len(set(report.images)) > 1 else ""
    ran = f"ran with this machine's programs, not in image{plural} {images}"
    if report.namespaces:
        return ran
    return f"{ran}; no namespaces ({report.because}), so paths were rewritten"


def _rows(instances: Sequence[InstanceReport]) -> list[_Row]:
    """A row for each instance; with many instances, those with the same result share one."""
    fold = len(instances) > MOST_ROWS
    groups: dict[object, list[InstanceReport]] = {}
    counts, notes = {}, {}
    for each in instances:
        records = records_of(each.journal)
        counts[each.label] = outcomes = Counter(
            str(r.get("outcome")) for r in records if r["type"] == "task_end"
        )
        if _worst(each) != 0:
            # no task failed, but the instance did
            outcomes["failed"] = max(1, outcomes["failed"])
        notes[each.label] = notes_on(each, records)
        codes = tuple(p.code if p else None for p in (each.init, each.command))
        alike = (each.label.rpartition("-")[0], codes, *counts[each.label].items())
        key = (alike, tuple(notes[each.label])) if fold else each.label
        groups.setdefault(key, []).append(each)
    return [
        _Row(
            label=_named([i.label for i in group]),
            counts=counts[group[0].label],
            phases=(_phases([i.init for i in group]), _phases([i.command for i in group])),
            failed=_worst(group[0]) != 0,
            notes=notes[group[0].label],
        )
        for group in groups.values()
    ]


def _named(labels: Sequence[str]) -> str:
    return labels[0] + (f" +{len(labels) - 1}" if len(labels) > 1 else "")


def _phases(phases: Sequence[PhaseReport | None]) -> str:
    """How a phase ended in instances with the same result: exit code and longest duration."""
    ended = [p for p in phases if p is not None]
    if not ended:
        return "-"
    last = max(ended, key=lambda p: p.seconds)
    if len(ended) == 1:
        return str(last)
    return f"exit {last.code} (≤ {spaced(format_duration(last.seconds))})"


def _table(rows: Sequence[_Row], console: Console, vault: Vault) -> Table:
    """A line per row; on a narrow terminal the times are below the exit codes."""
    table = _table_with(rows, vault, " (")
    unbounded = console.options.update_width(UNBOUNDED)
    if Measurement.get(console, unbounded, table).maximum <= console.width:
        return table
    return _table_with(rows, vault, "\n(")


def _table_with(rows: Sequence[_Row], vault: Vault, before_time: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("instance", overflow="fold")
    counted = [c for c in _COUNTED if c != "ignored" or any(row.counts[c] for row in rows)]
    for name in counted:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("init")
    table.add_column("command")
    for row in rows:
        cells = [_text(vault, row.label, style="red" if row.failed else "")]
        for name in counted:
            number = row.counts[name]
            cells.append(Text(str(number), style=name if number else "dim"))
        for phase in row.phases:
            bad = row.failed and not phase.startswith(("exit 0 ", "-"))
            text = phase.replace(" (", before_time)
            cells.append(Text(text, style="red" if bad else ""))
        table.add_row(*cells)
    return table


def _notes_of(rows: Sequence[_Row], vault: Vault) -> Table:
    """The notes, each next to its instance."""
    table = Table.grid(padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column(overflow="fold", max_width=30)
    table.add_column(overflow="fold")
    for row in rows:
        for number, note in enumerate(row.notes):
            label = "" if number else row.label
            table.add_row(
                _text(vault, label, style="red" if row.failed else ""), _text(vault, note)
            )
    return table


def _worst(instance: InstanceReport) -> int:
    phases = (instance.init, instance.command)
    return 0 if instance.is_stopped() else max((p.code for p in phases if p), default=0)


def _text(vault: Vault, text: str, style: str = "") -> Text:
    """A text that may come from the job: masked, and without control codes for the terminal."""
    return Text(vault.text(visible(text)), style=style)


def _ending(report: RunReport, vault: Vault) -> list[RenderableType]:
    word, style = ("succeeded", "bold green") if report.succeeded else ("failed", "bold red")
    failed = sum(_worst(each) != 0 for each in report.instances)
    despite = f" by its completion policy, {although(failed)}" if failed else ""
    verdict = f"{despite if report.succeeded else ''}: {report.verdict}"
    lines = [Text.assemble((word, style), _text(vault, verdict))]
    if first := first_failure_in(report.instances):
        lines.append(_text(vault, first, "bold"))
    if not report.succeeded:
        lines.append(Text(f"exit code {report.exit_code}"))
    workdir = report.workdir
    logs = f"logs: {workdir}/INSTANCE/output.log, more in {workdir}/INSTANCE/pai/logs"
    page = f"as a page: pairun report --html report.html {shlex.quote(workdir)}"
    return [*lines, _text(vault, logs, "dim"), _text(vault, page, "dim")]
