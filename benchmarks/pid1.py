"""What PID 1 costs a job: its start, its memory, the way of a signal, its end."""

from __future__ import annotations

import json
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator

from benchmarks.measure import ROOT, Row, in_turns, repeated, samples, wall, wall_ms
from benchmarks.volume import prepare, program
from pairun.base.paths import EXIT_SPEC_SCHEMA
from pairun.plan import Task

START_MS = 40.0
TASK_START_MS = 200.0
IDLE_MB = 15.0
SIGNAL_MS = 10.0
END_MS = 50.0
SUMMARY_MS = 500.0
LOG_BYTES = 10 * 1024 * 1024
TIMES = 7


def rows() -> Iterator[Row]:
    """Each cost beside a process that does nothing else."""
    argv, name = program()
    with tempfile.TemporaryDirectory() as folder:
        if len(argv) == 1:
            # Init copies the bundle, too. Of an older file, more pages may be in the page cache.
            argv = [shutil.copy(argv[0], folder)]
        yield from _rows(argv, name)


def _rows(argv: list[str], name: str) -> Iterator[Row]:
    """The costs of a program that runs the phase."""
    nothing = wall(lambda: subprocess.run(["/bin/true"], check=True), TIMES)
    moments = repeated(TIMES, lambda: _moments(argv))
    for what, goal, take in (
        ("start to the user's command", START_MS, lambda m: m["start"]),
        ("TERM to the user's process", SIGNAL_MS, lambda m: m["signal"]),
        ("its end to the container's", END_MS, lambda m: m["end"]),
    ):
        taken = samples([_milliseconds(take)(m) for m in moments])
        yield Row(what, "ms", taken, goal, "/bin/true", nothing, name)
    with_task = samples([m["start"] * 1000 for m in repeated(TIMES, lambda: _moments(argv, TASK))])
    yield Row(
        "start to the command after a task",
        "ms",
        with_task,
        TASK_START_MS,
        "/bin/true",
        nothing,
        name,
    )
    megabytes = samples([m["idle_mb"] for m in moments])
    python = samples([_idle_python_mb() for _ in moments])
    yield Row("idle memory of PID 1", "MB", megabytes, IDLE_MB, "an idle Python", python, name)
    without, whole = in_turns(
        TIMES,
        lambda: wall_ms(lambda: _failing(argv, specs=0)),
        lambda: wall_ms(lambda: _failing(argv, specs=27)),
    )
    yield Row(
        "exit summary of 10 MiB, 27 specs", "ms", whole.less(without), SUMMARY_MS,
        "a failure without specs", without, name,
    )  # fmt: skip


def _milliseconds(take: Callable[[dict[str, float]], float]) -> Callable[[dict[str, float]], float]:
    return lambda moments: take(moments) * 1000


_COMMAND = r"""
trap 'date +%s.%N >&2; exit 0' TERM
date +%s.%N >&2
while :; do sleep 0.005; done
"""


TASK = Task(id="a", name="A task", module="cmd", args={"argv": ["true"]})


def _moments(argv: list[str], *tasks: Task) -> dict[str, float]:
    """Seconds from start to command, from TERM to its trap, from its end to ours; and megabytes."""
    with tempfile.TemporaryDirectory() as folder:
        env = prepare(pathlib.Path(folder), _COMMAND, tasks=tasks)
        began = time.time()
        process = subprocess.Popen(
            argv, cwd=ROOT, env=env, text=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        started = _stamp(process)
        idle_mb = _resident_mb(process.pid)
        asked = time.time()
        process.send_signal(signal.SIGTERM)
        trapped = _stamp(process)
        process.wait()
        ended = time.time()
        assert process.stderr is not None
        process.stderr.close()
    return {
        "start": started - began,
        "signal": trapped - asked,
        "end": ended - trapped,
        "idle_mb": idle_mb,
    }


def _idle_python_mb() -> float:
    """The memory of a Python that has imported nothing and waits."""
    with subprocess.Popen(
        [sys.executable, "-c", "print(flush=True); input()"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        process.stdout.readline()
        megabytes = _resident_mb(process.pid)
        process.communicate("\n")
    return megabytes


def _resident_mb(pid: int) -> float:
    """The memory that a process has resident, in megabytes."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    kilobytes = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert kilobytes is not None
    return int(kilobytes[1]) * 1024 / 1e6


def _stamp(process: subprocess.Popen[str]) -> float:
    assert process.stderr is not None
    for line in process.stderr:
        if re.fullmatch(r"\d+\.\d+\n", line):
            return float(line)
    raise RuntimeError("the command did not run")


def _failing(argv: list[str], specs: int) -> None:
    """A job that failed, with a long log and an exit spec whose words the log holds."""
    with tempfile.TemporaryDirectory() as folder:
        volume = pathlib.Path(folder)
        env = prepare(volume, "exit 3\n")
        words = [f"error {chr(97 + n)} in step" for n in range(specs)]
        document = {
            "schema": EXIT_SPEC_SCHEMA,
            "specs": [
                {
                    "code": 200 + n,
                    "patterns": [
                        {"userLogRegex": {"regex": f"(?i:{w} x.*y)", "go": w, "any_of": [w]}}
                    ],
                }
                for n, w in enumerate(words)
            ],
        }
        (volume / "runtime.d" / "exit-spec.json").write_text(json.dumps(document))
        log = volume / "logs" / "local" / "user-all"
        log.mkdir()
        lines = b"".join(
            b"step %d loss 0.5 accuracy 0.9 and no trouble at all\n" % n for n in range(9999)
        )
        with (log / "current").open("wb") as f:
            while f.tell() < LOG_BYTES:
                f.write(lines)
        code = subprocess.run(argv, cwd=ROOT, env=env, capture_output=True, check=False).returncode
        if code != 255:
            raise RuntimeError(f"the job ended with {code}")
