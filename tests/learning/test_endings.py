"""The line at the end of a log that tells most."""

from __future__ import annotations

from pairun.diagnose.lines import Log
from pairun.diagnose.table import Table
from pairun.diagnose.weighing import diagnose
from pairun.errors import Problems
from pairun.learning.endings import ending_of, is_explained
from pairun.playbook.content import Content, built_in_root
from pairun.playbook.rules import read_rules

TABLE: Table = read_rules(Content([built_in_root()]), Problems()).table()


def _ending(text: str) -> tuple[str, int] | None:
    ending = ending_of(Log(text.encode(), "a.log"), TABLE, lambda line: line)
    return None if ending is None else (ending.text, ending.line)


def test_an_error_counts_more_than_what_follows() -> None:
    """The last line may be of no use."""
    assert _ending("start\nERROR: flux is low\ncleaning up\nbye\n") == ("ERROR: flux is low", 2)


def test_an_error_without_a_rule_counts_more_than_one_with_a_rule() -> None:
    """What rules match needs no other rule."""
    text = "ERROR: flux is low\nRuntimeError: CUDA error: invalid device ordinal\n"
    assert _ending(text) == ("ERROR: flux is low", 1)


def test_without_errors_the_last_line_counts() -> None:
    """Prefixes of ranks and times are no part of it."""
    assert _ending("a\n2024-01-01 00:00:00 [rank3]: the end\n\n") == ("the end", 2)
    assert _ending("\n \n") is None


def test_what_is_explained() -> None:
    """A cause that rules know, success, and progress; not an error at a quiet end."""
    told = {
        "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB\n": True,
        "step 1/9 loss: 0.1\ntraining completed successfully\n": True,
        "loading\nready\n": True,
        "the plugin failed to discharge the flux\nbye\n": False,
        "FATAL: the reactor scrammed\n": False,
    }
    for text, is_known in told.items():
        log = Log(text.encode())
        assert is_explained(log, diagnose([log], TABLE)) == is_known, text
