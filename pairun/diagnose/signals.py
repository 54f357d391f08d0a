"""A signal: one thing that shows why a job failed, whoever reports it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from pairun.diagnose.lines import Line, Log

SYSTEM = 97
"""The weight of a system's report, which outranks exceptions of the job's code and most texts."""

EFFECT = 45
"""The weight of what follows from another failure, or allows other explanations, such as exit code 1."""

FIRM = 70
"""The minimum weight of a signal that forbids a retry."""

CERTAIN = 40
"""The minimum weight of a signal that names a class."""

KUBERNETES, SLURM = "Kubernetes", "Slurm"
"""Sources of what systems report."""

PREVIOUS_LOG = "see why the container ended: `kubectl logs --previous POD`"
"""Advice for a container that started again."""


class Signal(NamedTuple):
    """A line of a log that a rule matches, or what a system reports.

    Attributes:
        klass: the failure class.
        weight: 0 to 98, minus what the surroundings take from it.
        words: what happened, for people; of a rule, with names of details in braces, or empty.
        source: the system that reports it: ``Kubernetes``, ``Slurm``, …; empty for text.
        fault: overrides the class's fault; may be empty.
        retry: overrides the class's advice on retries; may be empty.
        advice: overrides the class's advice; may be empty.
        start: offset of the decisive words in the line's text, in characters.
        rule: the name of the rule; empty for a system's report.
        role: of the rule; may be empty.
        details: the named captures of the rule.
        log: where it is; None if it is from no log.
        line: the line there.
        where: of an object in a file: the file and the line.
    """

    klass: str
    weight: int
    words: str = ""
    source: str = ""
    fault: str = ""
    retry: str = ""
    advice: str = ""
    start: int = 0
    rule: str = ""
    role: str = ""
    details: Mapping[str, str] = {}
    log: Log | None = None
    line: Line | None = None
    where: tuple[str, int] | None = None

    @property
    def at(self) -> int:
        """The offset of its line in the log, in bytes; -1 if it is from no log."""
        return self.line.at if self.line is not None else -1
