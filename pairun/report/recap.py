"""The recap of a run on this machine: how each instance ended, and why."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Sequence

import attrs
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from pairun.base.escapes import visible
from pairun.diagnose.brief import CONSEQUENCES
from pairun.diagnose.classes import UNKNOWN
from pairun.handover.journal import Record, read_journal
from pairun.module import format_duration
from pairun.report.live.activity import spaced
from pairun.report.paper import Trimmed
from pairun.report.runsummary import InstanceReport, PhaseReport, RunReport
from pairun.report.shown import fit
from pairun.secrets.vault import Vault

SURE = 0.7
"""Confidence below which a diagnosis is reported as a guess."""

MOST_ROWS = 12
"""If there are more instances, those that ended alike share a row."""

QUOTED = 100
"""So many characters of a task's last line are quoted."""

_DEFAULTS: Record = {
    "attempts": 0, "task": "a task", "message": "", "outcome": "", "output": [], "time": 0.0,
    "class": UNKNOWN, "headline": "", "confidence": 1.0,
}  # fmt: skip
"""What the recap takes for a field that is missing or has another type."""

_COUNTED = ("ok", "changed", "skipped", "ignored", "failed")


def print_run(report: RunReport, console: Console, vault: Vault) -> None:
    """Print the recap of a run.

    Args:
        report: the facts.
        console: where to print.
        vault: masks every text, before it is wrapped.
    """
    rows = _rows(report.instances)
    parts: list[RenderableType] = [
        _text(vault, _mode(report), style="dim"),
        _table(rows, vault),
    ]
    if any(row.notes for row in rows):
        parts.append(_notes_of(rows, vault))
    parts += _ending(report, vault)
    if console.is_terminal:
        # sets it apart from the output above
        console.print()
    console.print(Trimmed(Group(*parts)), end="")


@attrs.frozen(kw_only=True)
class _Row:
    """Instances that ended alike.

    Attributes:
        label: the first one, and how many more.
        counts: how many of their tasks had which outcome.
        phases: how init and the command ended.
        failed: whether they failed by themselves.
        notes: what else there is to know.
    """

    label: str
    counts: Counter[str]
    phases: tuple[str, str]
    failed: bool
    notes: Sequence[str]


def _records(journal: str) -> list[Record]:
    """The records of a journal, to which a job can write: fields of a wrong type count as missing."""
    return [
        _DEFAULTS | {k: v for k, v in record.items() if isinstance(v, type(_DEFAULTS.get(k, v)))}
        for record in read_journal(journal)
        if isinstance(record.get("type"), str)
    ]


def _mode(report: RunReport) -> str:
    images = ", ".join(dict.fromkeys(report.images))
    plural = "s" if len(set(report.images)) > 1 else ""
    ran = f"ran with this machine's programs, not in image{plural} {images}"
    if report.namespaces:
        return ran
    return f"{ran}; no namespaces ({report.because}), so paths were rewritten"


def _rows(instances: Sequence[InstanceReport]) -> list[_Row]:
    """A row for each instance; of many, those that ended alike share one."""
    fold = len(instances) > MOST_ROWS
    groups: dict[object, list[InstanceReport]] = {}
    counts, notes = {}, {}
    for each in instances:
        records = _records(each.journal)
        counts[each.label] = Counter(
            str(r.get("outcome")) for r in records if r["type"] == "task_end"
        )
        notes[each.label] = _notes(each, records)
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
    """How a phase ended in instances that ended alike: the exit code, and the longest time."""
    ended = [p for p in phases if p is not None]
    if not ended:
        return "-"
    last = max(ended, key=lambda p: p.seconds)
    if len(ended) == 1:
        return str(last)
    return f"exit {last.code} (≤ {spaced(format_duration(last.seconds))})"


def _table(rows: Sequence[_Row], vault: Vault) -> Table:
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
            cells.append(Text(phase, style="red" if bad else ""))
        table.add_row(*cells)
    return table


def _notes_of(rows: Sequence[_Row], vault: Vault) -> Table:
    """The notes, each beside its instance."""
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


def _notes(instance: InstanceReport, records: Sequence[Record]) -> list[str]:
    """Notes on an instance: retries, failures, exit handlers, diagnosis, stop."""
    stopped = instance.is_stopped()
    notes = [
        f"{r['task']} succeeded at attempt {r['attempts']}"
        for r in _ends(records, handler=False)
        if r["attempts"] > 1 and r["outcome"] in ("ok", "changed")
    ]
    notes += [
        _failed_task(records, r) for r in _ends(records, handler=False) if r["outcome"] == "failed"
    ]
    handlers = [f"{r['task']} {r['outcome']}" for r in _ends(records, handler=True)]
    if handlers:
        notes.append(f"exit handlers: {', '.join(handlers)}")
    notes += [_why(r) for r in records if r["type"] == "diagnosis" and not stopped]
    if stopped:
        notes.append(f"stopped: {instance.stopped}")
    if instance.command is None:
        notes.append(_without_command(instance))
    return notes


def _without_command(instance: InstanceReport) -> str:
    if instance.init is None or instance.is_stopped():
        return "the command was not started"
    return "init failed: the command was not started"


def _last_words(records: Sequence[Record], end: Record) -> str:
    """The last line that a task printed, if its message is only an exit code."""
    if not re.search(r"exit code \d+$", end["message"]):
        return ""
    attempts = [r for r in records if r["type"] == "attempt_end" and r["task"] == end["task"]]
    lines = [
        line for line in (map(str, attempts[-1]["output"]) if attempts else ()) if line.strip()
    ]
    return f" ({fit(lines[-1].strip(), QUOTED)})" if lines else ""


def _text(vault: Vault, text: str, style: str = "") -> Text:
    """A text that may come from the job: masked, and nothing in it is obeyed by a terminal."""
    return Text(vault.text(visible(text)), style=style)


def _ends(records: Sequence[Record], *, handler: bool) -> list[Record]:
    ends = [r for r in records if r["type"] == "task_end"]
    return [r for r in ends if bool(r.get("handler")) == handler]


def _first_failure(instances: Sequence[InstanceReport]) -> str:
    """Which of several instances failed first, and why; causes before what follows from them."""
    failures = []
    for instance in instances:
        if instance.is_stopped():
            continue
        records = _records(instance.journal)
        diagnoses = [r for r in records if r["type"] == "diagnosis"]
        tasks = [r for r in _ends(records, handler=False) if r["outcome"] == "failed"]
        for record in diagnoses or tasks:
            why = _why(record) if diagnoses else _failed_task(records, record)
            follows = record["class"] in CONSEQUENCES
            failures.append((follows, record["time"], instance.label, why))
    if not failures or len(instances) < 2:
        return ""
    _, _, label, why = min(failures)
    return f"first to fail: {label}: {why}"


def _failed_task(records: Sequence[Record], end: Record) -> str:
    return f"{end['task']} failed: {end['message']}{_last_words(records, end)}"


def _why(diagnosis: Record) -> str:
    """The headline of a diagnosis; ``probably`` marks a guess."""
    headline, klass = diagnosis["headline"], diagnosis["class"]
    if klass == UNKNOWN:
        return str(headline)
    guess = "probably " if diagnosis["confidence"] < SURE else ""
    return f"{guess}{headline} ({klass})"


def _ending(report: RunReport, vault: Vault) -> list[RenderableType]:
    word, style = ("succeeded", "bold green") if report.succeeded else ("failed", "bold red")
    lines = [Text.assemble((word, style), _text(vault, f": {report.verdict}"))]
    if first := _first_failure(report.instances):
        lines.append(_text(vault, first, "bold"))
    if not report.succeeded:
        lines.append(Text(f"exit code {report.exit_code}"))
    workdir = report.workdir
    logs = f"logs: {workdir}/INSTANCE/output.log, more in {workdir}/INSTANCE/pai/logs"
    page = f"a page to look at: pairun report --html report.html {shlex.quote(workdir)}"
    return [*lines, _text(vault, logs, "dim"), _text(vault, page, "dim")]
