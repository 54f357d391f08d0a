"""Why this instance was stopped: another one failed first, or a person pressed Ctrl-C.

To the container every stop is a SIGTERM from outside. `pairun run` leaves a note on the volume
before it sends one; in a cluster the job's rendezvous knows which instance failed first.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from pairun.base.paths import STOP_NOTE
from pairun.diagnose.brief import is_consequence
from pairun.diagnose.classes import CLASSES
from pairun.diagnose.weighing import Diagnosis, Evidence
from pairun.handover.door import Door

STOPPED = "terminated_sigterm"
BY_A_PERSON = "cancelled_by_user"
_MAX_NOTE_BYTES = 4096


def with_reason(
    diagnosis: Diagnosis, door: Door, first_failure: Callable[[Diagnosis], str | None]
) -> Diagnosis:
    """The diagnosis of an instance, with what stopped it if it was stopped.

    Args:
        diagnosis: what log, exit code and signals say.
        door: to the shared volume.
        first_failure: describes the instance that failed first; None if that is unknown or this
            instance. It is always called, because it also reports this instance's failure.
    """
    other = first_failure(diagnosis)
    if diagnosis.klass != STOPPED:
        if other is None or not is_consequence(diagnosis):
            return diagnosis
        return diagnosis._replace(headline=f"{diagnosis.headline}; {other}")
    by_person, words = _note(door)
    if by_person:
        kind = CLASSES[BY_A_PERSON]
        return diagnosis._replace(
            klass=BY_A_PERSON, fault=kind.fault, retry=kind.retry, headline=words,
            advice=kind.advice, evidence=(Evidence("", 0, words),),
        )  # fmt: skip
    if other is not None:
        advice = "look for the cause in that instance's log"
        headline = f"stopped because {other}"
    elif words:
        advice, headline = "", words
    else:
        return diagnosis
    return diagnosis._replace(fault="unknown", headline=headline, advice=advice)


def _note(door: Door) -> tuple[bool, str]:
    """Whether a person stopped the run, and why it was stopped; empty words without a note."""
    try:
        note = json.loads(door.read(f"{door.root}/{STOP_NOTE}", _MAX_NOTE_BYTES))
        return bool(note["by_person"]), str(note["words"])[:200]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return False, ""
