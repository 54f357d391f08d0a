"""Servers that another program stopped, and that shut down: no work was lost."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pairun.diagnose.classes import CLASSES
from pairun.diagnose.diagnosis import Diagnosis, Evidence, of_line
from pairun.diagnose.lines import Log

_STOPPED = "terminated_sigterm"
_END_LINES = 25
_SHUT_DOWN = re.compile(
    r"\bApplication shutdown complete\b|\bFinished server process \[\d|\bShutting down: Master\b"
    r"|(?i:\b(?:web|grpc|http|api|inference)?[ -]?server (?:has |was )?(?:stopped|shut ?down)\b(?! unexpected)"
    r"|\bgraceful(?:ly)? (?:shut ?down|stopp?ed) (?:is )?(?:complete[d]?|finished|done))"
)
"""What uvicorn, gunicorn and other servers log last."""


def with_clean_stop(diagnosis: Diagnosis, logs: Sequence[Log]) -> Diagnosis:
    """A diagnosis of a stop; it says so if the end of a log is a server's shutdown.

    Args:
        diagnosis: of the logs.
        logs: the logs.
    """
    if diagnosis.klass != _STOPPED or (shutdown := _shutdown(logs)) is None:
        return diagnosis
    kind = CLASSES[_STOPPED]
    headline = diagnosis.headline
    if headline == kind.meaning:
        headline = "the server was stopped from outside, and shut down"
    advice = diagnosis.advice
    if advice == kind.advice:
        advice = "run it again, unless it was stopped on purpose"
    lines = [e for e in diagnosis.evidence if e.line]
    facts = [e for e in diagnosis.evidence if not e.line]
    evidence = tuple(dict.fromkeys((*lines, shutdown, *facts)))
    return diagnosis._replace(headline=headline, advice=advice, evidence=evidence)


def _shutdown(logs: Sequence[Log]) -> Evidence | None:
    """The last line of a server's shutdown at the end of a log."""
    for log in logs:
        for line in reversed(log.tail(_END_LINES)):
            if _SHUT_DOWN.search(line.text):
                return of_line(log, line)
    return None
