"""What a run costs: the smallest of several measurements, because noise only ever adds."""

from __future__ import annotations

import pathlib
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

ROOT = pathlib.Path(__file__).parents[1]


class NotMeasured(Exception):
    """What a benchmark needs is not there; the message says what."""


class Row(NamedTuple):
    """One line of the table.

    Attributes:
        what: what was measured.
        measured_ms: how long it took, or how much CPU time.
        goal_ms: how long it may take, or None where only the ratio tells something.
        baseline: what it is compared with, in words.
        baseline_ms: how long that took in the same run.
        note: what else is to be said.
        broken: a promise besides the time was not kept.
    """

    what: str
    measured_ms: float
    goal_ms: float
    baseline: str
    baseline_ms: float
    note: str = ""
    broken: bool = False

    @property
    def is_over(self) -> bool:
        """Whether the goal was missed."""
        return self.broken or self.measured_ms > self.goal_ms


def smallest_ms(action: Callable[[], object], times: int) -> float:
    """The shortest of several runs, in milliseconds."""
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        action()
        taken.append(time.perf_counter() - began)
    return min(taken) * 1000


def cpu_ms(action: Callable[[], object]) -> float:
    """The CPU time of the processes that an action starts and waits for, in milliseconds.

    A busy machine makes a process wait, but hardly makes it compute for longer.
    """
    before = _children_s()
    action()
    return (_children_s() - before) * 1000


def _children_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def python(*args: str, pass_fds: Sequence[int] = (), codes: Sequence[int] = (0,)) -> bytes:
    """Run this Python to its end; returns what it printed.

    Args:
        args: its arguments.
        pass_fds: files that it inherits.
        codes: the exit codes that mean that it did what was measured.

    Raises:
        RuntimeError: it ended otherwise.
    """
    done = subprocess.run(
        [sys.executable, *args],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        pass_fds=pass_fds,
        check=False,
    )
    if done.returncode not in codes:
        raise RuntimeError(f"{' '.join(args)[:200]}: {done.returncode}\n{done.stderr.decode()}")
    return done.stdout
