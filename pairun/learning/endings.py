"""The ending of a log that no rule explains: its most telling line, its place and its writer."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from pairun.base.escapes import visible
from pairun.diagnose.classes import NONE, UNKNOWN
from pairun.diagnose.diagnosis import Diagnosis
from pairun.diagnose.lines import Line, Log
from pairun.diagnose.surroundings import ERROR_LEVEL, TROUBLE
from pairun.diagnose.table import Table

EXPLAINED = 0.6
"""The minimum confidence with which a diagnosis explains a log."""

_ENDS_WELL = 0.8
_TAIL_LINES = 16
_MAX_CHARS = 400
_COMPLAINT = re.compile(
    r"(?i)\b(?:errors?|fail(?:ed|ure|s)?|fatal|abort\w*|cannot|could not|unable|killed|lost|denied|refused"
    r"|invalid|timed? ?out|exception|panic|unexpected|missing|exceeded|stuck)\b"
)


class Ending(NamedTuple):
    """The ending of a log.

    Attributes:
        text: the most telling line, without prefixes and secrets.
        file: the log's name for people.
        line: the number of that line.
        node: the machine; empty if unknown.
        job: the job; empty if unknown.
    """

    text: str
    file: str
    line: int
    node: str = ""
    job: str = ""


def is_explained(log: Log, diagnosis: Diagnosis) -> bool:
    """Whether rules explain a log's ending.

    A log without a known failure, without success and without progress at its end is explained only
    if it also shows no error there.
    """
    if diagnosis.klass == NONE and diagnosis.confidence < _ENDS_WELL:
        return not any(map(_is_error, log.tail(_TAIL_LINES)))
    return diagnosis.klass != UNKNOWN and diagnosis.confidence >= EXPLAINED


def ending_of(log: Log, table: Table, mask: Callable[[str], str]) -> Ending | None:
    """The most telling line at the end of a log: of its last errors one that no rule matches.

    Args:
        log: the log.
        table: the rules.
        mask: removes the secrets from a line.

    Returns:
        The ending; None if the log is empty.
    """
    tail = [line for line in log.tail(_TAIL_LINES) if line.text.strip()]
    if not tail:
        return None
    errors = [line for line in tail if _is_error(line)]
    new = [line for line in errors if not table.matches(line.text)]
    line = (new or errors or tail)[-1]
    return Ending(sample_of(line, mask), log.name, log.number(line.at))


def sample_of(line: Line, mask: Callable[[str], str]) -> str:
    """A line as a rule's sample: printable, bounded, without its secrets.

    Args:
        line: the line.
        mask: removes the secrets from a text.
    """
    return mask(visible(line.text.strip()[:_MAX_CHARS]).replace("\t", " "))


def _is_error(line: Line) -> bool:
    text = line.text
    return bool(TROUBLE.search(text) or ERROR_LEVEL.search(text) or _COMPLAINT.search(text))
