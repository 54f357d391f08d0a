"""Second looks at what decided a rank's log, in the light of the other ranks' logs.

A line that most ranks print, and after which they wait for their peers, is an error that the program handles.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from pairun.diagnose.brief import is_consequence
from pairun.diagnose.classes import CLASSES, NONE, UNKNOWN
from pairun.diagnose.diagnosis import Diagnosis
from pairun.diagnose.lines import parse
from pairun.incident.findings import Finding

_VALUE = re.compile(r"\d+")


def reconsidered(findings: Sequence[Finding]) -> list[Finding]:
    """Correct the diagnoses of single logs by those of the others.

    Args:
        findings: of all writers of a job.
    """
    if len(findings) < 2:
        return list(findings)
    handled = {_deciding(f) for f in findings if f.loss_after is not None}
    ranks = sum(not f.writer.launcher for f in findings)
    lines = Counter(_deciding(f) for f in findings if _deciding(f) in handled)
    common = {line for line, count in lines.items() if count > 1 and 2 * count >= ranks}
    return [_corrected(f, handled=_deciding(f) in common) for f in findings]


def _corrected(finding: Finding, *, handled: bool) -> Finding:
    if finding.loss_before is not None:
        return finding._replace(diagnosis=finding.loss_before)
    if not handled or is_consequence(finding.diagnosis):
        return finding
    kind = CLASSES[NONE]
    nothing = Diagnosis(NONE, kind.fault, None, 0.7, kind.meaning, kind.advice, (), {}, (), "")
    return finding._replace(diagnosis=finding.loss_after or nothing, at=finding.last)


def _deciding(finding: Finding) -> str:
    """The deciding line without its prefixes and numbers; empty for a log without a failure."""
    diagnosis = finding.diagnosis
    if diagnosis.klass in (NONE, UNKNOWN) or not diagnosis.evidence:
        return ""
    return _VALUE.sub("#", parse(0, diagnosis.evidence[0].text.encode()).text)
