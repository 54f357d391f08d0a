"""A log is cut where a launcher starts again, and nowhere else."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairun.diagnose.circumstances import Circumstances
from pairun.diagnose.lines import Log, parse
from pairun.diagnose.segments import Mark, cut, mark_of, setbacks
from pairun.diagnose.table import NO_LIMIT, Table
from pairun.diagnose.weighing import diagnose
from tests.diagnose.cases import STEPS
from tests.effort import cases

_BANNER = (
    "*****************************************\n"
    "Setting OMP_NUM_THREADS environment variable for each process to be 1 in default, tune it\n"
)
_FAILED = "failed (exitcode: 1) local_rank: 3 (pid: 71) of binary: /usr/bin/python3\n"
_REPORTED = (
    "E1122 10:01:08.192000 4 torch/distributed/elastic/multiprocessing/api.py:1002] " + _FAILED
)
_PREEMPTED = "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT T DUE TO PREEMPTION ***\n"
_START = "[pairun] starting the command: python train.py\n"
_KEY = 'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\n    d[k]\nKeyError: 9\n'
_OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total\n"


def attempts(text: str, table: Table) -> int:
    """How many attempts a log records."""
    return diagnose([Log(text.encode())], table, Circumstances()).attempts


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (_BANNER + STEPS, 1),
        (_BANNER + STEPS + _OOM + _FAILED + _BANNER + STEPS, 2),
        (_BANNER + _KEY + _FAILED + _BANNER + _KEY + _FAILED + _BANNER + STEPS, 3),
        # eight ranks print the banner, and one has failed
        ("".join(f"[rank{n}]: NCCL version 2.21.5+cuda12.4\n" for n in range(8)) + STEPS, 1),
        ("[rank3]: KeyError: 9\n" + "[rank4]: NCCL version 2.21.5+cuda12.4\n" + STEPS, 1),
        # a node's launcher starts after another node has failed
        ("[pod/a-0/main] step 1\n[pod/a-0/main] KeyError: 9\n" + "[pod/a-1/main] " + _BANNER.split("\n")[1] + "\n", 1),
        ("[pod/a-0/main] step 1\n[pod/a-0/main] KeyError: 9\n" + "[pod/a-0/main] " + _BANNER.split("\n")[1] + "\n", 2),
        # a validation loop
        ("step 90: loss=1.0\nstep 100: loss=1.0\nval step 1: loss=1.0\nval step 2: loss=1.0\n", 1),
        (
            "step 900: loss=1.0\n" + _PREEMPTED + "step 801: loss=1.0\nstep 802: loss=1.0\n",
            2,
        ),
        (
            "Worker group default FAILED. 2/3 attempts left; will restart worker group\n" * 2
            + STEPS
            + "Worker group default FAILED. 1/3 attempts left; will restart worker group\n",
            2,
        ),
        ("loading the tokenizer files\n" * 8 + STEPS, 1),
        (f"[pairun] one task is ok\n{_START}{STEPS}", 1),
        (f"{_START}{_KEY}[pairun] the command failed\n{_START}{STEPS}", 2),
    ],
)  # fmt: skip
def test_the_attempts_of_a_log_are_counted(text: str, count: int, table: Table) -> None:
    """A start counts once the attempt before has ended."""
    assert attempts(text, table) == count


def test_the_last_attempt_is_judged(table: Table) -> None:
    """What ended an earlier attempt is history, and names the class only if the last tells nothing."""
    text = _BANNER + _OOM + _FAILED + _BANNER + STEPS + _KEY + _FAILED
    assert diagnose([Log(text.encode())], table).klass == "user_code_error"
    assert (
        diagnose([Log((_BANNER + _OOM + _FAILED + _BANNER + _FAILED).encode())], table).klass
        == "gpu_oom"
    )


def test_an_attempt_that_goes_on_is_healthy(table: Table) -> None:
    """A job that was restarted and trains is not failing."""
    assert (
        diagnose([Log((_BANNER + STEPS + _OOM + _FAILED + _BANNER + STEPS).encode())], table).klass
        == "none"
    )


_KINDS = st.sampled_from(["end", "raised", "restart", "launch", "begin"])
_MARKS = st.lists(st.builds(Mark, st.integers(-9, 999), _KINDS, st.text(max_size=2)))


@settings(max_examples=cases(100), deadline=None)
@given(st.integers(0, 900), _MARKS)
def test_the_attempts_cover_a_log_once(size: int, marks: list[Mark]) -> None:
    """Whatever lines say, attempts have no gap, none is empty, and they end where the log does."""
    found = cut(size, marks)
    assert (
        [each.start for each in found] == [0, *(each.end for each in found[:-1])]
        if found
        else size == 0
    )
    assert all(each.start < each.end for each in found)
    assert not found or found[-1].end == size
    assert found == cut(size, reversed(marks))


@settings(max_examples=cases(60), deadline=None)
@given(
    st.lists(
        st.sampled_from([_BANNER, _FAILED, _KEY, STEPS[:200], "x\0\xff\r\n", "\r", "\n"]),
        max_size=8,
    )
)
def test_any_bytes_are_cut_at_lines(table: Table, parts: list[str]) -> None:
    """Every attempt begins at the beginning of a line of the log."""
    log = Log("".join(parts).encode("latin-1"))
    lines = [
        (parse(start, log.data[start:end]), end) for start, end in table.lines(log.data, NO_LIMIT)
    ]
    marks = [mark for line, end in lines if (mark := mark_of(line, end))]
    for each in cut(len(log.data), [*marks, *setbacks(log, marks)]):
        assert each.start == 0 or log.data[each.start - 1 : each.start] in (b"\n", b"\r")
