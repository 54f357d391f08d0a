"""What a task costs: a runtime phase of nothing but tasks that have nothing to do."""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import subprocess
import tempfile
from collections.abc import Iterator
from typing import Any

from benchmarks.measure import ROOT, TIMES, Row, Samples, python, wall
from pairun.contract.loading import ModuleFile
from pairun.handover.planwriting import SecretStore, dump_plan
from pairun.plan import Plan, Task

GOAL_MS = 3.0
MAX_GROWTH = 1.25
"""What a task may cost at ten times as many tasks, compared with before."""

_PROGRAMS = 200


def rows() -> Iterator[Row]:
    """The cost of one task among 1,000 and among 10,000, and of one among the other."""
    program = wall(_start_programs).times(1 / _PROGRAMS)
    few = _ms_per_task(1_000)
    yield Row("one task of 1,000", "ms", few, GOAL_MS, "starting /bin/true", program)
    many = _ms_per_task(10_000)
    yield Row("one task of 10,000", "ms", many, GOAL_MS, "starting /bin/true", program)
    most = few.least * MAX_GROWTH
    yield Row("its growth from 1,000 to 10,000", "ms", many, most, "one of 1,000", few)


def _start_programs() -> None:
    for _ in range(_PROGRAMS):
        subprocess.run(["/bin/true"], check=True)


def _ms_per_task(count: int) -> Samples:
    tasks = tuple(
        Task(id=f"t{n}", name=f"Task {n}", module="cmd", args={"script": ""}) for n in range(count)
    )
    with tempfile.TemporaryDirectory() as folder:
        volume = pathlib.Path(folder)
        fill(volume, tasks)
        return wall(lambda: run_tasks(volume), TIMES).times(1 / count)


def fill(volume: pathlib.Path, tasks: tuple[Task, ...]) -> None:
    """Leave a plan of the runtime phase as init does."""
    modules = {}
    for name in {t.module for t in tasks}:
        path = ROOT / "modules" / f"{name}.py"
        sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
        modules[name] = ModuleFile(path=str(path), sha256=sha256, built_in=True)
    store = SecretStore(("a-secret-that-is-looked-for",))
    document = dump_plan(Plan(phase="runtime", steps=tasks, modules=modules), store)
    (volume / "logs" / "local").mkdir(parents=True)
    (volume / "runtime.d").mkdir()
    (volume / "runtime.d" / "plan.json").write_text(json.dumps(document))
    (volume / "runtime.d" / "secrets.json").write_text(json.dumps(store.dump()))


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
