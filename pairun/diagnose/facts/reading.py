"""Selects the reader for a line, and returns its facts; reads losses that are NaN and remain so."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pairun.diagnose.facts.kernel import GPUS, KERNEL
from pairun.diagnose.facts.launchers import LAUNCHERS, SLURM
from pairun.diagnose.facts.pods import PODS
from pairun.diagnose.lines import Line, Log
from pairun.diagnose.signals import LIKELY, Reader, Signal

_NAN = re.compile(
    r"(?i)\b(?:\w{1,30}[ _-])?loss\w{0,12}['\"]?(?: \([\w ]{1,20}\))?\s{0,4}[:=]?\s{1,4}(?:tensor\()?[+-]?nan\b"
    r"|(?i:\bloss\w{0,12}['\"]?[:=](?:tensor\()?[+-]?nan\b)"
)
_FINITE = re.compile(
    r"(?i)\bloss\w{0,12}['\"]?(?: \([\w ]{1,20}\))?\s{0,4}[:=]?\s{0,4}(?:tensor\()?[+-]?\d"
)
_AFTER = 200


def _loss_of(line: Line, log: Log) -> Sequence[Signal] | None:
    if not _NAN.search(line.shown):
        return None
    # mixed precision skips a step whose loss overflows; later losses are finite again
    if any(_FINITE.search(after.shown) for after in log.after(line.at, _AFTER)):
        return []
    return [
        Signal(
            "loss_nan",
            LIKELY + 2,
            "the training reports a loss that is not a number",
            "training",
        )
    ]


_LOSSES = Reader(("loss",), _loss_of)

_READERS = (PODS, KERNEL, SLURM, GPUS, LAUNCHERS, _LOSSES)

WORDS = tuple(sorted({word for reader in _READERS for word in reader.words}))
"""Lower-case words; a line that some reader reads contains one of them."""


def facts_of(line: Line, log: Log) -> Sequence[Signal] | None:
    """The facts in a line.

    Returns:
        None if the line is free text. An empty sequence if a reader reads it and it reports no
        failure.
    """
    lower = line.shown.lower()
    for reader in _READERS:
        if any(word in lower for word in reader.words):
            facts = reader.read(line, log)
            if facts is not None:
                return facts
    return None
