"""How far a job got, from its output: step, epoch, checkpoint."""

from __future__ import annotations

import re
from typing import NamedTuple

_TAIL_BYTES = 1 << 18

_STEP = re.compile(
    rb"(?i)(?<![a-z_.-])(?:global[_ ]?step|train[_ ]?step|step|iteration|iter|it|update)s?['\"]?\]?\W{0,3}(?P<step>\d{1,12})(?![\d.]*[a-z/]?s\b)"
    rb"|\d%\|[^|\n\r]{0,300}\| *(?P<bar>\d{1,12})/\d+ \["
)
_EPOCH = re.compile(rb"(?i)(?<![a-z_.-])epoch['\"]?\]?\W{0,3}(?P<epoch>\d{1,7})(?![\d.]*%)")
_CHECKPOINT = re.compile(
    rb"(?i)(?:sav(?:ed|ing)|wr(?:ote|iting)|stor(?:ed|ing))\b[^\n\r]{0,80}?(?:checkpoint|ckpt|snapshot)[^\n\r]{0,160}"
)

_PIECE_BYTES = 1 << 12
"""How many bytes the first step of a search from the end covers; each step has four times as many."""


class Progress(NamedTuple):
    """How far a job got.

    Attributes:
        step: its last step; None if unknown.
        epoch: its last epoch; None if unknown.
        checkpoint: the last line about a checkpoint; empty if there is none.
    """

    step: int | None = None
    epoch: int | None = None
    checkpoint: str = ""

    def is_beyond(self, earlier: Progress) -> bool | None:
        """Whether a job got further than an earlier one; None if unknown."""
        if self.step is not None and earlier.step is not None:
            return self.step > earlier.step
        if self.epoch is not None and earlier.epoch is not None:
            return self.epoch > earlier.epoch
        if self.checkpoint and self.checkpoint != earlier.checkpoint:
            return True
        return None

    def words(self) -> str:
        """The progress for people; empty if unknown."""
        if self.step is not None:
            return f"step {self.step}"
        return f"epoch {self.epoch}" if self.epoch is not None else ""


def progress_in(data: bytes) -> Progress:
    """How far a job got, from the end of its log."""
    tail = data[-_TAIL_BYTES:]
    step, epoch, checkpoint = (last_match(each, tail) for each in (_STEP, _EPOCH, _CHECKPOINT))
    return Progress(
        int(step["step"] or step["bar"]) if step else None,
        int(epoch["epoch"]) if epoch else None,
        checkpoint[0].decode("utf-8", "replace").strip() if checkpoint else "",
    )


def last_match(pattern: re.Pattern[bytes], data: bytes) -> re.Match[bytes] | None:
    """The last match of an expression that matches within one line; searches from the end.

    Args:
        pattern: the expression.
        data: the log.
    """
    end, size = len(data), _PIECE_BYTES
    while end > 0:
        start = data.rfind(b"\n", 0, max(0, end - size)) + 1
        matches = list(pattern.finditer(data, start, end))
        if matches:
            return matches[-1]
        end, size = start, 4 * size
    return None
