"""A log to which a job script appends is cut where its first lines repeat."""

from __future__ import annotations

import pytest

from pairun.diagnose.findings import findings_in
from pairun.diagnose.lines import Log
from pairun.diagnose.segments import Mark, recurrences
from pairun.diagnose.table import NO_LIMIT, Table

_HEAD = (
    "loaded module: python/3.{n}\n"
    "2026-01-0{n} 10:00:0{n} reading the table of images\n"
    "found 1{n}00 images\n"
    "seed: 4{n}\n"
)
_ERROR = "the reactor scrammed\n"


def starts(text: str) -> set[int]:
    """The lines at which a log begins again."""
    log = Log(text.encode())
    marks = recurrences(log, [Mark(text.index(_ERROR), "end")] if _ERROR in text else [])
    return {log.number(mark.at) for mark in marks if mark.kind == "launch"}


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (_HEAD.format(n=1) + _ERROR, set()),
        (_HEAD.format(n=1) + _ERROR + _HEAD.format(n=2), {6, 7}),
        (_HEAD.format(n=1) + _ERROR + "seed: 49\n" + _HEAD.format(n=2), {7, 8}),
        # one line that repeats is no start
        (_HEAD.format(n=1) + _ERROR + "loaded module: python/3.4\n" + _ERROR, set()),
        # another rank's start is not this one's
        (
            "".join(f"[rank0]: {line}\n" for line in _HEAD.format(n=1).splitlines())
            + _ERROR
            + "".join(f"[rank1]: {line}\n" for line in _HEAD.format(n=1).splitlines()),
            set(),
        ),
        # the lines of each epoch are no start
        ("epoch 1 loss: 2\nstep 1: lr=2 of 10\nacc: 0.1 of all\n" * 3 + _ERROR, set()),
        ("", set()),
    ],
)  # fmt: skip
def test_a_block_of_first_lines_begins_an_attempt(text: str, lines: set[int]) -> None:
    """Numbers and times may differ; a single line may repeat."""
    assert starts(text) >= lines
    assert bool(starts(text)) == bool(lines)


def test_an_error_that_repeats_begins_no_attempt(table: Table) -> None:
    """A kernel's log never starts again, and a stack that a program prints twice is one failure."""
    lost = "kernel: NVRM: GPU at PCI:0000:3b:00: GPU is lost after 10{n} s\nkernel: NVRM: free failed: 0xf{n}\n"
    text = "".join(lost.format(n=n) + f"kernel: NVRM: assertion {n} failed\n" for n in range(1, 4))
    assert starts(text)
    found = findings_in(Log(text.encode()), table, NO_LIMIT, failed=False)
    assert len(found.attempts) == 1
