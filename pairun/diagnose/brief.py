"""A diagnosis in a few lines, from the table of rules that init left."""

from __future__ import annotations

import json

from pairun.diagnose.circumstances import Circumstances
from pairun.diagnose.classes import NONE, UNKNOWN
from pairun.diagnose.lines import Log
from pairun.diagnose.table import Table
from pairun.diagnose.weighing import ADVISED, Diagnosis, Evidence, diagnose

CONSEQUENCES = frozenset(
    (NONE, UNKNOWN, "nccl_timeout", "peer_lost", "rendezvous_timeout", "terminated_sigterm")
)
"""Classes of those who fail because somebody else did."""

_SHOWN = 200
_RETRY = {
    "after_fix": "do not run it again before that",
    "never": "do not run it again",
}
_WHOSE = {
    "user": "the job's own",
    "platform": "the platform's",
    "hardware": "the hardware's",
    "unknown": "nobody knows whose",
}


def parse_table(text: bytes) -> Table | None:
    """The table that init left, or None where it is none that can be used."""
    try:
        return Table(json.loads(text))
    except (RecursionError, ValueError, KeyError, TypeError, AttributeError):
        return None


def why(table: Table, log: bytes, facts: Circumstances, deadline_s: float) -> Diagnosis:
    """Why the container's job died.

    Args:
        table: the rules.
        log: the end of what it printed.
        facts: what else is known.
        deadline_s: how long it may take, in seconds.
    """
    return diagnose([Log(log, "log")], table, facts, deadline_s)


def exit_code_of(diagnosis: Diagnosis, table: Table) -> int | None:
    """The exit code that the cluster gives the class, where the diagnosis is sure enough."""
    return table.exit_codes.get(diagnosis.klass) if diagnosis.confidence * 100 >= ADVISED else None


def is_consequence(diagnosis: Diagnosis) -> bool:
    """Whether it is what others do when somebody fails, or nothing at all."""
    return diagnosis.klass in CONSEQUENCES


def in_words(diagnosis: Diagnosis) -> list[str]:
    """A diagnosis for people: what, the evidence, what to do."""
    about = f"{diagnosis.klass}, {diagnosis.confidence:.0%}"
    if diagnosis.klass not in (NONE, UNKNOWN):
        about += f", {_WHOSE[diagnosis.fault]}"
    lines = [f"{_visible(diagnosis.headline)} ({about})"]
    shown = diagnosis.evidence if diagnosis.klass == UNKNOWN else diagnosis.evidence[:1]
    lines += [f"  {_place(e)}{_visible(e.text[:_SHOWN])}" for e in shown]
    if diagnosis.advice:
        lines.append(
            "  do: "
            + "; ".join(filter(None, (diagnosis.advice, _RETRY.get(diagnosis.retry or ""))))
        )
    return lines


def _place(evidence: Evidence) -> str:
    return f"{_visible(evidence.file)}:{evidence.line}: " if evidence.line else ""


def _visible(text: str) -> str:
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
