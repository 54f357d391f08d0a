"""Why this instance was stopped: another instance failed first, or a person pressed Ctrl-C.

In the container every stop is a SIGTERM from outside. `pairun run` writes a note to the volume
before it sends one; in a cluster the job's rendezvous knows which instance failed first.
"""

from __future__ import annotations

from collections.abc import Callable

from pairun.diagnose.brief import is_consequence
from pairun.diagnose.classes import CLASSES
from pairun.diagnose.diagnosis import Diagnosis
from pairun.handover.door import Door
from pairun.handover.stopnote import read_stop_note

STOPPED = "terminated_sigterm"
BY_A_PERSON = "cancelled_by_user"


def with_reason(
    diagnosis: Diagnosis, door: Door, first_failure: Callable[[Diagnosis], str | None]
) -> Diagnosis:
    """An instance's diagnosis; if it was stopped, with the reason for the stop.

    Args:
        diagnosis: from log, exit code and signals.
        door: to the shared volume.
        first_failure: describes the instance that failed first; None if it is unknown or this
            instance. Always called, because it also reports this instance's failure.
    """
    other = first_failure(diagnosis)
    if diagnosis.klass != STOPPED:
        if other is None or not is_consequence(diagnosis):
            return diagnosis
        return diagnosis._replace(headline=f"{diagnosis.headline}; {other}")
    note = read_stop_note(door)
    if note is not None and note.by_person:
        kind = CLASSES[BY_A_PERSON]
        return diagnosis._replace(
            klass=BY_A_PERSON, fault=kind.fault, retry=kind.retry, confidence=1.0,
            headline=note.words, advice=kind.advice, evidence=(),
        )  # fmt: skip
    if other is not None:
        advice = "look for the cause in that instance's log"
        headline = f"stopped because {other}"
    elif note is not None:
        advice, headline = "", note.words
    else:
        return diagnosis
    return diagnosis._replace(fault="unknown", headline=headline, advice=advice)
