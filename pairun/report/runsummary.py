"""The summary of a run on this machine."""

from __future__ import annotations

import re
import shlex
import textwrap
from collections.abc import Sequence

import attrs

from pairun.diagnose.brief import CONSEQUENCES
from pairun.diagnose.classes import UNKNOWN
from pairun.handover.journal import Record, read_journal
from pairun.module import format_duration
from pairun.report.terminal import Style, fit, visible

WIDTH = 100
SURE = 0.7
"""Confidence below which a diagnosis is reported as a guess."""


@attrs.frozen(kw_only=True)
class PhaseReport:
    """A phase that has ended: its exit code and how long it took."""

    code: int
    seconds: float

    def __str__(self) -> str:
        return f"exit {self.code} ({_spaced(format_duration(self.seconds))})"


def _spaced(duration: str) -> str:
    """A duration for people: ``1m 5s`` for ``1m5s``, ``472 ms`` for ``472ms``."""
    parts = re.findall(r"([0-9.]+)([a-z]+)", duration)
    return " ".join(f"{n}{unit}" if len(parts) > 1 else f"{n} {unit}" for n, unit in parts)


@attrs.frozen(kw_only=True)
class InstanceReport:
    """The summary's facts about an instance.

    Attributes:
        label: role and number.
        init: its init phase; None if that did not end.
        command: its runtime phase; None if that did not begin.
        stopped: why the engine sent it a signal to stop; empty if it did not.
        journal: the file of its journal.
    """

    label: str
    init: PhaseReport | None
    command: PhaseReport | None
    stopped: str
    journal: str

    def is_stopped(self) -> bool:
        """Whether the signal ended it; one that failed by itself at the same time has failed."""
        ends = (r for r in read_journal(self.journal) if r["type"] == "phase_end")
        return bool(self.stopped) and all(r.get("outcome") != "failure" for r in ends)


@attrs.frozen(kw_only=True)
class RunReport:
    """The summary's facts about a run.

    Attributes:
        namespaces: whether each instance had its own namespaces.
        because: why they had none.
        images: the images that a cluster would use.
        instances: in the order of the job.
        succeeded: whether the job succeeded.
        exit_code: the exit code of the run.
        verdict: why the job succeeded or failed, in words.
        workdir: the folder of the logs and everything else.
    """

    namespaces: bool
    because: str
    images: Sequence[str]
    instances: Sequence[InstanceReport]
    succeeded: bool
    exit_code: int
    verdict: str
    workdir: str


def render_run(report: RunReport, style: Style) -> str:
    """The text of the summary, at most `WIDTH` columns wide."""
    return "\n".join([*_wrap(_mode(report)), *_table(report, style), *_ending(report, style)])


def _mode(report: RunReport) -> str:
    images = ", ".join(dict.fromkeys(report.images))
    plural = "s" if len(set(report.images)) > 1 else ""
    ran = f"ran with this machine's programs, not in image{plural} {images}"
    if report.namespaces:
        return ran
    return f"{ran}; no namespaces ({report.because}), so paths were rewritten"


def _table(report: RunReport, style: Style) -> list[str]:
    rows = [("instance", "init", "command", "")]
    rows += [
        (i.label, str(i.init or "-"), str(i.command or "-"), "; ".join(_notes(i)))
        for i in report.instances
    ]
    widths = [max(len(row[n]) for row in rows) for n in range(3)]
    indent = sum(widths) + 6
    out = []
    for number, row in enumerate(rows):
        head = "  ".join(cell.ljust(width) for cell, width in zip(row[:3], widths, strict=True))
        # A long role name may leave no room; then the notes start on a new line.
        narrow = WIDTH - indent < 30
        notes = textwrap.wrap(row[3], WIDTH - 4 if narrow else WIDTH - indent)
        first = "" if narrow or not notes else notes.pop(0)
        line = f"{head[:WIDTH]}  {first}".rstrip()
        if number:
            code = _worst(report.instances[number - 1])
            out.append(style(line, *(("red",) if code else ())))
        else:
            out.append(style(line, "dim"))
        out += [" " * (4 if narrow else indent) + note for note in notes]
    return out


def _worst(instance: InstanceReport) -> int:
    phases = (instance.init, instance.command)
    return 0 if instance.is_stopped() else max((p.code for p in phases if p), default=0)


def _notes(instance: InstanceReport) -> list[str]:
    """Notes on an instance: retries, failures, exit handlers, diagnosis, stop."""
    records = read_journal(instance.journal)
    stopped = instance.is_stopped()
    notes = [
        f"{r['task']} succeeded at attempt {r['attempts']}"
        for r in _ends(records, handler=False)
        if r["attempts"] > 1 and r["outcome"] in ("ok", "changed")
    ]
    notes += [
        f"{r['task']} failed: {r['message']}{_last_words(records, r)}"
        for r in _ends(records, handler=False)
        if r["outcome"] == "failed"
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
        line for line in (attempts[-1].get("output") or () if attempts else ()) if line.strip()
    ]
    return f" ({fit(visible(lines[-1].strip()), WIDTH)})" if lines else ""


def _ends(records: Sequence[Record], *, handler: bool) -> list[Record]:
    ends = [r for r in records if r["type"] == "task_end"]
    return [r for r in ends if bool(r.get("handler")) == handler]


def _first_failure(instances: Sequence[InstanceReport]) -> list[str]:
    """Which of several instances failed first, and why; causes before what follows from them."""
    failures = []
    for instance in instances:
        if instance.is_stopped():
            continue
        for record in read_journal(instance.journal):
            if record["type"] == "diagnosis":
                follows = record.get("class") in CONSEQUENCES
                failures.append((follows, record.get("time", 0.0), instance.label, record))
    if not failures or len(instances) < 2:
        return []
    _, _, label, record = min(failures, key=lambda f: f[:3])
    return _wrap(f"first to fail: {label}: {_why(record)}")


def _why(diagnosis: Record) -> str:
    """The headline of a diagnosis; ``probably`` marks a guess."""
    headline, klass = visible(str(diagnosis.get("headline", ""))), diagnosis.get("class")
    if klass == UNKNOWN:
        return headline
    guess = "probably " if diagnosis.get("confidence", 1.0) < SURE else ""
    return f"{guess}{headline} ({klass})"


def _ending(report: RunReport, style: Style) -> list[str]:
    word = style("succeeded", "green") if report.succeeded else style("failed", "red")
    first, *more = _wrap(f"{'succeeded' if report.succeeded else 'failed'}: {report.verdict}")
    first = first.replace("succeeded" if report.succeeded else "failed", word, 1)
    code = [] if report.succeeded else [f"exit code {report.exit_code}"]
    logs = f"logs: {report.workdir}/INSTANCE/output.log, more in {report.workdir}/INSTANCE/pai/logs"
    why = _first_failure(report.instances)
    page = f"a page to look at: pairun report --html report.html {shlex.quote(report.workdir)}"
    return [first, *more, *why, *code, *_wrap(logs), *_wrap(page)]


def _wrap(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, subsequent_indent="  ", break_on_hyphens=False)
