"""The recap of a local run: how each instance ended, and why."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Sequence

import attrs
from rich.console import Console, Group, RenderableType
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from pairun.base.durations import shown_duration
from pairun.base.escapes import visible
from pairun.diagnose.classes import UNKNOWN
from pairun.report.journal.history import InstancePast, TaskPast
from pairun.report.journal.runoutcome import although, first_failure
from pairun.report.paper import UNBOUNDED, Trimmed
from pairun.report.shown import fit
from pairun.secrets.vault import Vault
from pairun.volume.journal import Record

SURE = 0.7
"""Diagnoses below this confidence are reported as guesses."""

QUOTED = 100
"""How many characters of a task's last line to quote."""

MOST_ROWS = 12
"""With more instances, those with the same result share a row."""

_COUNTED = ("ok", "changed", "skipped", "ignored", "failed")


@attrs.frozen(kw_only=True)
class PhaseReport:
    """A phase that has ended: its exit code and how long it took."""

    code: int
    seconds: float

    def __str__(self) -> str:
        return f"exit {self.code} ({shown_duration(self.seconds)})"


@attrs.frozen(kw_only=True)
class InstanceReport:
    """The recap's facts about an instance.

    Attributes:
        past: what its journal records; a job can write to that.
        init: its init phase; None if that has not ended.
        command: its runtime phase; None if that never began.
        stopped: why the engine stopped it; empty if it did not.
    """

    past: InstancePast
    init: PhaseReport | None
    command: PhaseReport | None
    stopped: str

    @property
    def is_stopped(self) -> bool:
        """Whether the stop signal ended it; false if it failed on its own at the same time."""
        return bool(self.stopped) and all(p.outcome != "failure" for p in self.past.phases)

    @property
    def failed(self) -> bool:
        """Whether it failed on its own."""
        return not self.is_stopped and any(p and p.code for p in (self.init, self.command))

    def counts(self) -> Counter[str]:
        """How many tasks had which outcome; a failed command counts, too."""
        counts = Counter(t.outcome for p in self.past.phases for t in p.tasks)
        if self.failed:
            counts["failed"] = max(1, counts["failed"])
        return counts

    def ended(self) -> tuple[PhaseReport | None, PhaseReport | None]:
        """Init and the command with the times of the journal, if it has them, as in the report."""
        init = [p.seconds for p in self.past.phases if p.name == "init" and p.measured]
        command = [p.command.seconds for p in self.past.phases if p.command and p.command.measured]
        return _timed(self.init, init), _timed(self.command, command)

    def notes(self) -> list[str]:
        """Retries, failures, exit handlers, diagnosis, stop."""
        phases = self.past.phases
        tasks = [t for p in phases for t in p.tasks]
        notes = [
            f"{t.id} succeeded at attempt {t.attempts[-1].attempt}"
            for t in tasks
            if not t.handler and len(t.attempts) > 1 and t.outcome in ("ok", "changed")
        ]
        notes += [
            f"{t.id} failed: {t.message or ''}{_last_words(t)}"
            for t in tasks
            if not t.handler and t.outcome == "failed"
        ]
        if handlers := [f"{t.id} {t.outcome}" for t in tasks if t.handler]:
            notes.append(f"exit handlers: {', '.join(handlers)}")
        if self.is_stopped:
            notes.append(f"stopped: {self.stopped}")
        else:
            notes += [_why(p.diagnosis) for p in phases if p.diagnosis]
        if self.command is None:
            by_init = "" if self.init is None or self.is_stopped else "init failed: "
            notes.append(f"{by_init}the command was not started")
        return notes


def _timed(phase: PhaseReport | None, seconds: Sequence[float]) -> PhaseReport | None:
    return attrs.evolve(phase, seconds=seconds[-1]) if phase and seconds else phase


def _last_words(task: TaskPast) -> str:
    """The last line of a task's output, if its message is only an exit code."""
    output = task.attempts[-1].output if task.attempts else ()
    lines = [line.strip() for line in output if line.strip()]
    if not lines or not re.search(r"exit code \d+$", task.message or ""):
        return ""
    return f" ({fit(lines[-1], QUOTED)})"


def _why(diagnosis: Record) -> str:
    """The headline of a diagnosis; ``probably`` marks a guess."""
    headline, klass, confidence = (diagnosis[k] for k in ("headline", "class", "confidence"))
    if klass == UNKNOWN:
        return str(headline)
    guess = "probably " if confidence is not None and confidence < SURE else ""
    return f"{guess}{headline} ({klass})"


@attrs.frozen(kw_only=True)
class RunReport:
    """The recap's facts about a run.

    Attributes:
        namespaces: whether each instance had its own namespaces.
        because: why they had none.
        images: the images that a cluster would use.
        instances: in the order of the job.
        succeeded: whether the job succeeded.
        exit_code: the exit code of the run.
        verdict: why the job succeeded or failed, as text.
        workdir: the folder with the logs and all other files.
    """

    namespaces: bool
    because: str
    images: Sequence[str]
    instances: Sequence[InstanceReport]
    succeeded: bool
    exit_code: int
    verdict: str
    workdir: str


def print_run(report: RunReport, console: Console, vault: Vault) -> None:
    """Print the recap of a run.

    Args:
        report: the facts.
        console: where to print.
        vault: masks every text before it is wrapped.
    """
    groups = _groups(report.instances)
    parts: list[RenderableType] = [
        _text(vault, _mode(report), style="dim"),
        _table(groups, console, vault),
    ]
    if any(group[0].notes() for group in groups):
        parts.append(_notes_of(groups, vault))
    parts += _ending(report, vault)
    if console.is_terminal:
        # an empty line after the output
        console.print()
    console.print(Trimmed(Group(*parts)), end="")


_Group = Sequence[InstanceReport]
"""Instances with the same result."""


def _mode(report: RunReport) -> str:
    images = ", ".join(dict.fromkeys(report.images))
    plural = "s" if len(set(report.images)) > 1 else ""
    ran = f"ran with this machine's programs, not in image{plural} {images}"
    if report.namespaces:
        return ran
    return f"{ran}; no namespaces ({report.because}), so paths were rewritten"


def _groups(instances: Sequence[InstanceReport]) -> list[_Group]:
    """A group for each instance; with many instances, one for those with the same result."""
    fold = len(instances) > MOST_ROWS
    groups: dict[object, list[InstanceReport]] = {}
    for each in instances:
        codes = tuple(p and p.code for p in (each.init, each.command))
        role = each.past.label.rpartition("-")[0]
        alike = (role, codes, *each.counts().items(), *each.notes())
        groups.setdefault(alike if fold else each.past.label, []).append(each)
    return list(groups.values())


def _name(group: _Group, vault: Vault) -> Text:
    more = f" +{len(group) - 1}" if len(group) > 1 else ""
    return _text(vault, f"{group[0].past.label}{more}", "red" if group[0].failed else "")


def _phases(phases: Sequence[PhaseReport | None]) -> str:
    """How a phase ended in instances with the same result: exit code and longest duration."""
    ended = [p for p in phases if p is not None]
    if not ended:
        return "-"
    last = max(ended, key=lambda p: p.seconds)
    if len(ended) == 1:
        return str(last)
    return f"exit {last.code} (≤ {shown_duration(last.seconds)})"


def _table(groups: Sequence[_Group], console: Console, vault: Vault) -> Table:
    """A line per group; on a narrow terminal the times are below the exit codes."""
    table = _table_with(groups, vault, " (")
    unbounded = console.options.update_width(UNBOUNDED)
    if Measurement.get(console, unbounded, table).maximum <= console.width:
        return table
    return _table_with(groups, vault, "\n(")


def _table_with(groups: Sequence[_Group], vault: Vault, before_time: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("instance", overflow="fold")
    counts = [group[0].counts() for group in groups]
    counted = [c for c in _COUNTED if c != "ignored" or any(each[c] for each in counts)]
    for name in counted:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("init")
    table.add_column("command")
    for group, numbers in zip(groups, counts, strict=True):
        cells = [_name(group, vault)]
        cells += [Text(str(numbers[n]), style=n if numbers[n] else "dim") for n in counted]
        for phase in map(_phases, zip(*(each.ended() for each in group), strict=True)):
            bad = group[0].failed and not phase.startswith(("exit 0 ", "-"))
            cells.append(Text(phase.replace(" (", before_time), style="red" if bad else ""))
        table.add_row(*cells)
    return table


def _notes_of(groups: Sequence[_Group], vault: Vault) -> Table:
    """The notes, each next to its instance."""
    table = Table.grid(padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column(overflow="fold", max_width=30)
    table.add_column(overflow="fold")
    for group in groups:
        for number, note in enumerate(group[0].notes()):
            table.add_row("" if number else _name(group, vault), _text(vault, note))
    return table


def _text(vault: Vault, text: str, style: str = "") -> Text:
    """A text that may come from the job: masked, and without control codes for the terminal."""
    return Text(vault.text(visible(text)), style=style)


def _ending(report: RunReport, vault: Vault) -> list[RenderableType]:
    word, style = ("succeeded", "bold green") if report.succeeded else ("failed", "bold red")
    failed = sum(each.failed for each in report.instances)
    despite = f" by its completion policy, {although(failed)}" if failed else ""
    verdict = f"{despite if report.succeeded else ''}: {report.verdict}"
    lines = [Text.assemble((word, style), _text(vault, verdict))]
    first = first_failure([i.past for i in report.instances if not i.is_stopped])
    if first is not None and len(report.instances) > 1:
        who = "; ".join(filter(None, (first.label, first.followed)))
        lines.append(_text(vault, f"first to fail: {who}", "bold"))
    if not report.succeeded:
        lines.append(Text(f"exit code {report.exit_code}"))
    workdir = report.workdir
    logs = f"logs: {workdir}/INSTANCE/output.log, more in {workdir}/INSTANCE/pai/logs"
    page = f"as a page: pairun report --html report.html {shlex.quote(workdir)}"
    return [*lines, _text(vault, logs, "dim"), _text(vault, page, "dim")]
