"""The end of the last attempt decides; a failure that a later attempt outlived is history."""

from __future__ import annotations

import pytest

from pairun.diagnose.circumstances import Circumstances
from pairun.diagnose.lines import Log
from pairun.diagnose.table import Table
from pairun.diagnose.weighing import diagnose
from tests.diagnose.cases import STEPS

_HEAD = (
    "loaded module: cuda/12.4\n"
    "reading the table of images\n"
    "found 1200 images of 31 kinds\n"
    "number of parameters: 12.4 M\n"
)
_OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total\n"
_KEY = 'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\n    d[k]\nKeyError: 9\n'
_KILLED = "  Reason:       OOMKilled\n"
_EXITED = "failed (exitcode: 1) local_rank: 3 (pid: 71) of binary: /usr/bin/python3\n"
_RESTART = "Worker group default FAILED. 2/3 attempts left; will restart worker group\n"


@pytest.mark.parametrize(
    ("text", "klass"),
    [
        (_HEAD + _OOM + _HEAD + _KEY, "user_code_error"),
        (_HEAD + _KEY + _HEAD + _OOM, "gpu_oom"),
        # a system's report about an earlier attempt is history, too
        (_HEAD + "    State: Terminated\n" + _KILLED + _HEAD + _KEY, "user_code_error"),
        (_HEAD + _OOM + _HEAD + STEPS, "none"),
        (_HEAD + _OOM + _HEAD + "wrote the table of results\n", "none"),
        (_HEAD + "sh: 1: ninja: not found\n" + _HEAD + "wrote the table of results\n", "none"),
        # only the effect is left of the last attempt
        (_HEAD + _OOM + _HEAD + _EXITED, "gpu_oom"),
        # after a restart in place the log may end too early
        (_OOM + _RESTART + "reading the table\n", "gpu_oom"),
        (_OOM + _RESTART + STEPS, "none"),
        (_HEAD + _OOM + _HEAD + _KEY.rpartition("KeyError")[0], "gpu_oom"),
    ],
)
def test_the_last_attempt_decides(text: str, klass: str, table: Table) -> None:
    """Its cause, its success, or its silence if the whole job began anew."""
    assert diagnose([Log(text.encode())], table).klass == klass


def test_an_exit_code_keeps_the_earlier_cause(table: Table) -> None:
    """The job failed, so a last attempt without an error has not healed it."""
    log = Log((_HEAD + _OOM + _HEAD + "wrote the table\n").encode())
    assert diagnose([log], table, Circumstances(exit_code=1)).klass == "gpu_oom"


def test_ranks_that_follow_one_another_are_no_attempts(table: Table) -> None:
    """Each of them begins with the same lines."""
    waits = "".join(
        f"{_HEAD}[rank{n}]:[E1 ProcessGroupNCCL.cpp:629] [Rank {n}] Watchdog caught collective "
        f"operation timeout: WorkNCCL(SeqNum={n}, OpType=ALLREDUCE) ran for 600000 milliseconds\n"
        for n in range(1, 4)
    )
    assert diagnose([Log((_HEAD + _KEY + waits).encode())], table).klass == "user_code_error"
