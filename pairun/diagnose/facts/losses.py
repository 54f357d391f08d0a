"""Facts from a training's own reports: a loss that is NaN and remains so."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pairun.diagnose.facts.fact import LIKELY, Fact, Reader
from pairun.diagnose.lines import Line, Log

_NAN = re.compile(
    r"(?i)\b(?:\w{1,30}[ _-])?loss\w{0,12}['\"]?(?: \([\w ]{1,20}\))?\s{0,4}[:=]?\s{1,4}(?:tensor\()?[+-]?nan\b"
    r"|(?i:\bloss\w{0,12}['\"]?[:=](?:tensor\()?[+-]?nan\b)"
)
_FINITE = re.compile(
    r"(?i)\bloss\w{0,12}['\"]?(?: \([\w ]{1,20}\))?\s{0,4}[:=]?\s{0,4}(?:tensor\()?[+-]?\d"
)
_AFTER = 200


def _read(line: Line, log: Log) -> Sequence[Fact] | None:
    if not _NAN.search(line.shown):
        return None
    # mixed precision skips a step whose loss overflows; later losses are finite again
    if any(_FINITE.search(after.shown) for after in log.after(line.at, _AFTER)):
        return []
    return [
        Fact(
            "loss_nan",
            LIKELY + 2,
            "the training reports a loss that is not a number",
            "training",
            line.at,
        )
    ]


LOSSES = Reader(("loss",), _read)
