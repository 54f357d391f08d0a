"""What a task costs: a runtime phase of nothing but tasks that have nothing to do."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import pathlib
import subprocess
import tempfile
from collections.abc import Iterator
from typing import Any

from benchmarks.measure import TIMES, Row, cpu_ms, in_turns, python, samples, wall_ms
from benchmarks.volume import built_in, leave_plan
from pairun.plan import Plan, Task
from pairun.volume.planfile import SecretStore

GOAL_MS = 3.0
MAX_GROWTH = 1.25
"""What a task may cost at ten times as many tasks, compared with before."""

_FEW, _MANY = 500, 5_000
_PROGRAMS = 200


def rows() -> Iterator[Row]:
    """The time of a task among few and among many, without the start, and the growth of its CPU time."""
    counts = (0, _FEW, _MANY)
    cpu: dict[int, list[float]] = {count: [] for count in counts}
    with contextlib.ExitStack() as stack:
        volumes = {count: _volume(stack, 1 + count) for count in counts}

        def run(count: int) -> float:
            taken: list[float] = []
            cpu[count].append(
                cpu_ms(lambda: taken.append(wall_ms(lambda: run_tasks(volumes[count]))))
            )
            return taken[0]

        programs, start, *wall = in_turns(
            TIMES, lambda: wall_ms(_start_programs), *(functools.partial(run, n) for n in counts)
        )
    program = programs.times(1 / _PROGRAMS)
    for count, taken in zip(counts[1:], wall, strict=True):
        one = taken.less(start).times(1 / count)
        yield Row(f"one task of {count:,}", "ms", one, GOAL_MS, "starting /bin/true", program)
    # CPU time, which a busy machine hardly changes.
    few, many = (samples(cpu[n]).less(samples(cpu[0])).times(1 / n) for n in counts[1:])
    yield Row(
        f"its CPU from {_FEW:,} to {_MANY:,}", "ms", many, few.least * MAX_GROWTH,
        f"one of {_FEW:,}", few,
    )  # fmt: skip


def _start_programs() -> None:
    for _ in range(_PROGRAMS):
        subprocess.run(["/bin/true"], check=True)


def _volume(stack: contextlib.ExitStack, count: int) -> pathlib.Path:
    """A volume with a plan of so many tasks that have nothing to do."""
    volume = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
    tasks = (
        Task(id=f"t{n}", name=f"Task {n}", module="cmd", args={"script": ""}) for n in range(count)
    )
    fill(volume, tuple(tasks))
    return volume


def fill(volume: pathlib.Path, tasks: tuple[Task, ...]) -> None:
    """Leave a plan of the runtime phase as init does."""
    modules = {t.module: built_in(t.module) for t in tasks}
    store = SecretStore(("a-secret-that-is-looked-for",))
    leave_plan(volume, Plan(phase="runtime", steps=tasks, modules=modules), store)


def run_tasks(volume: pathlib.Path) -> dict[str, Any]:
    """Run the tasks as PID 1 does; returns the state that they leave.

    Raises:
        RuntimeError: they did not succeed.
    """
    state = os.memfd_create("state")
    argv = ["-m", "pairun", "tasks", str(volume), "--part", "tasks", "--state-out", str(state)]
    try:
        python(*argv, pass_fds=[state])
        answer: dict[str, Any] = json.loads(os.pread(state, os.fstat(state).st_size, 0))
    finally:
        os.close(state)
    if answer["outcome"] != "success":
        raise RuntimeError(f"the tasks ended in {answer['outcome']}")
    return answer
