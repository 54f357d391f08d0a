"""A diagnosis in a few lines, from the rule table that init wrote."""

from __future__ import annotations

import zlib

from pairun.base.foreignjson import parse_json
from pairun.diagnose.circumstances import Circumstances
from pairun.diagnose.classes import CONSEQUENCES, NONE, UNKNOWN
from pairun.diagnose.diagnosis import Diagnosis, Evidence
from pairun.diagnose.lines import Log
from pairun.diagnose.signals import FIRM
from pairun.diagnose.table import Table
from pairun.diagnose.weighing import diagnose

_EVIDENCE_CHARS = 200
_TABLE_BYTES = 16 << 20
_RETRY_ADVICE = {"after_fix": "do not run it again before that"}
_WHOSE = {
    "user": "the job's own",
    "platform": "the platform's",
    "hardware": "the hardware's",
    "framework": "the framework's",
    "unknown": "fault unknown",
}


def parse_table(packed: bytes) -> Table | None:
    """Parse a table of rules that init wrote: JSON, compressed by zlib; None if it is not usable."""
    try:
        return Table(parse_json(zlib.decompressobj().decompress(packed, _TABLE_BYTES)))
    except (ValueError, KeyError, TypeError, AttributeError, zlib.error):
        return None


def why(table: Table, log: bytes, facts: Circumstances, deadline_s: float) -> Diagnosis:
    """Diagnose why the container's job died.

    Args:
        table: the rules.
        log: the end of its output.
        facts: known besides the log.
        deadline_s: limit for the diagnosis, in seconds.
    """
    return diagnose([Log(log, "log")], table, facts, deadline_s)


def exit_code_of(diagnosis: Diagnosis, table: Table) -> int | None:
    """The exit code that the cluster assigns to the class, or None if the diagnosis is too unsure."""
    return table.exit_codes.get(diagnosis.klass) if diagnosis.confidence * 100 >= FIRM else None


def is_consequence(diagnosis: Diagnosis) -> bool:
    """Whether the instance failed because another one failed, or for an unknown cause."""
    return diagnosis.klass in CONSEQUENCES


def diagnosis_lines(diagnosis: Diagnosis) -> list[str]:
    """The lines for people: what happened, the evidence, what to do."""
    lines = [_visible(diagnosis.headline) + _about(diagnosis)]
    shown = diagnosis.evidence if diagnosis.klass == UNKNOWN else diagnosis.evidence[:1]
    lines += [f"  {_place(e)}{_visible(_cut(e.text))}" for e in shown]
    if diagnosis.advice:
        advice = filter(None, (diagnosis.advice, _RETRY_ADVICE.get(diagnosis.retry or "")))
        lines.append(f"  do: {'; '.join(advice)}")
    return lines


def _about(diagnosis: Diagnosis) -> str:
    """The class, its confidence below 100 %, and its fault; empty for an unknown class."""
    if diagnosis.klass == UNKNOWN:
        return ""
    about = [diagnosis.klass]
    if diagnosis.confidence < 1:
        about.append(f"{diagnosis.confidence:.0%}")
    if diagnosis.klass != NONE:
        about.append(_WHOSE[diagnosis.fault])
    return f" ({', '.join(about)})"


def _cut(text: str) -> str:
    """A text's beginning; an ellipsis marks what is left out."""
    return text if len(text) <= _EVIDENCE_CHARS else f"{text[: _EVIDENCE_CHARS - 1].rstrip()}…"


def _place(evidence: Evidence) -> str:
    return f"{_visible(evidence.file)}:{evidence.line}: " if evidence.line else ""


def _visible(text: str) -> str:
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
