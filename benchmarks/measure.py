"""What a run costs: samples in a unit, taken in turns with those of what it is compared with.

A goal is held against the smallest sample, because noise only ever adds; the median shows how much
of it there was.
"""

from __future__ import annotations

import os
import pathlib
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, TypeVar

T = TypeVar("T")

ROOT = pathlib.Path(__file__).parents[1]

TIMES = 5
"""How often a time is taken at least."""

most_times = sys.maxsize
"""How often a time is taken at most; `--smoke` sets 1."""

Unit = Literal["ms", "MB", "kB", "count"]
"""Of a row: milliseconds; 10^6 or 10^3 bytes; a number of things."""


class NotMeasured(Exception):
    """What a benchmark needs is missing; the message says what."""


class Samples(NamedTuple):
    """What several runs took.

    Attributes:
        least: the smallest.
        median: the middle one.
        runs: how many; 1 for what is the same in every run, such as a size.
    """

    least: float
    median: float
    runs: int

    def less(self, other: Samples) -> Samples:
        """What remains of this without the other."""
        return Samples(
            self.least - other.least, self.median - other.median, min(self.runs, other.runs)
        )

    def times(self, factor: float) -> Samples:
        """A multiple of this, or with a factor below 1 a share."""
        return Samples(self.least * factor, self.median * factor, self.runs)


class Row(NamedTuple):
    """One line of the table.

    Attributes:
        what: what was measured.
        unit: of the samples and of the goal.
        measured: what it took.
        goal: how much it may be at most.
        peer: what it is compared with, in words.
        peer_measured: what that took in the same run.
        note: what else is to be said.
        broken: a promise besides the number was not kept.
    """

    what: str
    unit: Unit
    measured: Samples
    goal: float
    peer: str
    peer_measured: Samples
    note: str = ""
    broken: bool = False

    @property
    def ratio(self) -> float:
        """How many times what it is compared with it costs."""
        return self.measured.least / self.peer_measured.least

    @property
    def is_over(self) -> bool:
        """Whether the goal was missed."""
        return self.broken or self.measured.least > self.goal


def samples(values: Sequence[float]) -> Samples:
    """The samples of several runs."""
    return Samples(min(values), statistics.median(values), len(values))


def fixed(value: float) -> Samples:
    """What is the same in every run."""
    return Samples(value, value, 1)


def repeated(times: int, measure: Callable[[], T]) -> list[T]:
    """Take a measure several times, once in a smoke run."""
    return [measure() for _ in range(min(times, most_times))]


def in_turns(times: int, *measures: Callable[[], float]) -> list[Samples]:
    """Take several measures in turns, so that a busy machine is busy for all of them.

    Args:
        times: how often each is taken.
        measures: each returns one value.
    """
    rounds = repeated(times, lambda: [measure() for measure in measures])
    return [samples(values) for values in zip(*rounds, strict=True)]


def wall_ms(action: Callable[[], object]) -> float:
    """The time that an action takes, in milliseconds."""
    began = time.perf_counter()
    action()
    return (time.perf_counter() - began) * 1000


def wall(action: Callable[[], object], times: int = TIMES) -> Samples:
    """The time of several runs of an action, in milliseconds."""
    return samples(repeated(times, lambda: wall_ms(action)))


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
    """Run this Python to its end; it finds compiled what it imports. Returns what it printed.

    Args:
        args: its arguments.
        pass_fds: files that it inherits.
        codes: the exit codes that mean that it did what was measured.

    Raises:
        RuntimeError: it ended otherwise.
    """
    env = {n: v for n, v in os.environ.items() if n != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [sys.executable, *args],
        cwd=ROOT,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        pass_fds=pass_fds,
        check=False,
    )
    if done.returncode not in codes:
        raise RuntimeError(f"{' '.join(args)[:200]}: {done.returncode}\n{done.stderr.decode()}")
    return done.stdout


# --- the table ------------------------------------------------------------------------------------

HEAD = ("what", "least", "median", "goal", "", "ratio", "of")


def cells(row: Row) -> tuple[str, ...]:
    """A row's cells, in the order of `HEAD`."""
    compared = f"{row.peer} ({amount(row.peer_measured.least, row.unit)})"
    return (
        row.what,
        amount(row.measured.least, row.unit),
        amount(row.measured.median, row.unit) if row.measured.runs > 1 else "",
        amount(row.goal, row.unit),
        "over" if row.is_over else "ok",
        f"{row.ratio:.2f}" if row.ratio >= 0.1 else f"{row.ratio:.4f}",
        f"{compared}; {row.note}" if row.note else compared,
    )


def line(texts: Sequence[str]) -> str:
    """A line of the table."""
    what, least, median, goal, verdict, ratio, rest = texts
    return f"{what:34} {least:>10} {median:>10} {goal:>10}  {verdict:4} {ratio:>6}  {rest}"


def amount(value: float, unit: Unit) -> str:
    """A number with its unit, as exact as it is worth."""
    text = f"{value:.2f}" if value < 100 and unit != "count" else f"{value:.0f}"
    return text if unit == "count" else f"{text} {unit}"
