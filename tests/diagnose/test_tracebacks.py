"""Tracebacks: which of their lines are source code."""

from __future__ import annotations

from pairun.diagnose.lines import Log
from pairun.diagnose.table import Table
from pairun.diagnose.weighing import diagnose

BOXED = """\
12:04:16 ERROR    training failed
                  ╭─────────────── Traceback (most recent call last) ────────────────╮
                  │ /job/train.py:41 in step                                         │
                  │                                                                  │
                  │    40 │   if loss != loss:                                       │
                  │ ❱  41 │   │   raise FloatingPointError("loss is nan at step 9")  │
                  ╰──────────────────────────────────────────────────────────────────╯
                  KeyError: 'label'
"""


def test_the_source_code_in_a_box_of_rich_is_no_message(table: Table) -> None:
    """The exception is below the box."""
    assert diagnose([Log(BOXED.encode())], table).klass == "user_code_error"
