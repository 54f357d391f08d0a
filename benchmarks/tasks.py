"""What a task costs: a runtime phase of nothing but tasks that have nothing to do."""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import subprocess
import tempfile
from collections.abc import Iterator

from benchmarks.measure import ROOT, Row, python, smallest_ms
from pairun.executor.plan import ModuleFile, Plan, SecretStore, Task, dump_plan

GOAL_MS = 3.0
MAX_GROWTH = 1.25
"""What a task may cost at ten times as many tasks, compared with before."""

_PROGRAMS = 200


def rows() -> Iterator[Row]:
    """The cost of one task among 1,000 and among 10,000, and of one among the other."""
    program = smallest_ms(_start_programs, 3) / _PROGRAMS
    few = _ms_per_task(1_000, times=3)
    yield Row("one task of 1,000", few, GOAL_MS, "starting /bin/true", program)
    many = _ms_per_task(10_000, times=1)
    yield Row("one task of 10,000", many, GOAL_MS, "starting /bin/true", program)
    yield Row("its growth from 1,000 to 10,000", many, few * MAX_GROWTH, "one of 1,000", few)


def _start_programs() -> None:
    for _ in range(_PROGRAMS):
        subprocess.run(["/bin/true"], check=True)


def _ms_per_task(count: int, times: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        volume = pathlib.Path(folder)
        _fill(volume, count)
        return smallest_ms(lambda: _run(volume), times) / count


def _fill(volume: pathlib.Path, count: int) -> None:
    """Leave a plan as init does."""
    module = ROOT / "modules" / "cmd.py"
    sha256 = hashlib.sha256(module.read_bytes()).hexdigest()
    tasks = tuple(
        Task(id=f"t{n}", name=f"Task {n}", module="cmd", args={"script": ""}) for n in range(count)
    )
    modules = {"cmd": ModuleFile(path=str(module), sha256=sha256, built_in=True)}
    store = SecretStore(("a-secret-that-is-looked-for",))
    document = dump_plan(Plan(phase="runtime", steps=tasks, modules=modules), store)
    (volume / "logs" / "local").mkdir(parents=True)
    (volume / "runtime.d").mkdir()
    (volume / "runtime.d" / "plan.json").write_text(json.dumps(document))
    (volume / "runtime.d" / "secrets.json").write_text(json.dumps(store.dump()))


def _run(volume: pathlib.Path) -> None:
    state = os.memfd_create("state")
    argv = ["-m", "pairun", "tasks", str(volume), "--part", "tasks", "--state-out", str(state)]
    try:
        python(*argv, pass_fds=[state])
        outcome = json.loads(os.pread(state, os.fstat(state).st_size, 0))["outcome"]
    finally:
        os.close(state)
    if outcome != "success":
        raise RuntimeError(f"the tasks ended in {outcome}")
