"""A clock that jumps: waits are measured by the monotonic clock, and dates are only written."""

from __future__ import annotations

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
from typing import Any

import pytest

from tests.stopwatch import Stopwatch

LIBRARIES = list(pathlib.Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))


class Clock:
    """The wall clock of a phase, which jumps.

    Args:
        file: libfaketime reads the time from it at every call.
    """

    def __init__(self, file: pathlib.Path) -> None:
        self._file = file
        self.jump("+0d")
        self.env = {
            "LD_PRELOAD": str(LIBRARIES[0]), "FAKETIME_TIMESTAMP_FILE": str(file),
            "FAKETIME_NO_CACHE": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1", "TZ": "UTC",
        }  # fmt: skip

    def jump(self, to: str) -> None:
        """Set the clock: ``+10y`` or ``-10y`` from now, or ``@1969-12-31 23:59:58``."""
        new = self._file.with_suffix(".new")
        new.write_text(to + "\n")
        new.rename(self._file)


@pytest.fixture
def clock(tmp_path: pathlib.Path) -> Clock:
    """A clock that a test may set."""
    if not LIBRARIES:
        pytest.skip("needs Debian's package faketime")
    return Clock(tmp_path / "clock")


JUMPS = ["+20y", "-20y", "@1969-12-31 23:59:57", "@2038-01-19 03:14:06"]


@pytest.mark.slow
@pytest.mark.parametrize("to", JUMPS)
def test_jump_while_the_command_runs(volume: Any, start: Any, clock: Clock, to: str) -> None:
    """A jump changes no exit code, loses no line of a log, and ends no wait."""
    folder = pathlib.Path(volume.root) / "logs" / "local"
    folder.mkdir(parents=True)
    fifo = pathlib.Path(volume.root) / "fifo"
    os.mkfifo(fifo)
    volume.command(
        f"seq 1 3000; echo ready; read -r line <{fifo}; seq 3001 6000; (sleep 1; echo late) & exit 5"
    )
    running = start(PAIRUN_LOG_BYTES="8Ki", **clock.env)
    running.line("ready")
    clock.jump(to)
    fifo.write_text("go\n")
    assert running.end() == 5
    assert running.got("late")
    # our own lines may come between two pieces of a line of the other stream
    text = re.sub(r"\[pairun\] [^\n]*\n", "", "\n".join(running.lines))
    assert [int(line) for line in text.split("\n") if line.isdecimal()] == list(range(1, 6001))
    for name in ("user-stdout", "user-all"):
        files = sorted(path.name for path in (folder / name).iterdir())
        assert len(files) == 2, files
        assert re.fullmatch(r"@[0-9a-f]{24}\.s", files[0])
        assert files[1] == "current"
    records = [json.loads(line) for line in (folder / "journal.jsonl").read_text().splitlines()]
    (ended,) = (r for r in records if r["type"] == "command_end")
    assert 0 <= ended["seconds"] < 60


@pytest.mark.slow
@pytest.mark.parametrize("to", JUMPS[:2])
def test_jump_during_the_grace_time(volume: Any, start: Any, clock: Clock, to: str) -> None:
    """The grace time neither ends early nor lasts longer when the clock jumps in it."""
    volume.command("trap 'echo told' TERM; echo ready; while :; do sleep 0.1; done")
    running = start(PAIRUN_GRACE="3s", **clock.env)
    running.line("ready")
    with Stopwatch() as watch:
        running.signal(signal.SIGTERM)
        running.line("told")
        clock.jump(to)
        assert running.end() == 137
    assert watch.took_s > 0.5
    assert watch.within(3.0), watch


WAITS = """\
protocolVersion: 2
name: waits
type: job
prerequisites: [{type: dockerimage, name: i, uri: 'example.com/a/b:1'}]
taskRoles:
  worker:
    instances: 1
    dockerImage: i
    resourcePerInstance: {cpu: 1, memoryMB: 1, gpu: 0}
    commands: [echo hello]
extras:
  pairun:
    runtime:
      - before: user_command
        id: waits
        name: It succeeds once the clock has jumped
        cmd: {script: 'echo asked; test -e jumped && sleep 1'}
        retries: 20
        delay: 500ms
        timeout: 30s
        deadline: 60s
"""


@pytest.mark.slow
@pytest.mark.parametrize("to", ["+1d", "-1d"])
def test_jump_while_a_task_waits(tmp_path: pathlib.Path, clock: Clock, to: str) -> None:
    """A day ends no attempt and no deadline, and no pause lasts longer for it."""
    (tmp_path / "job.yaml").write_text(WAITS.replace("jumped", str(tmp_path / "jumped")))
    argv = [sys.executable, "-m", "pairun", "run", "job.yaml"]
    with subprocess.Popen(
        argv, cwd=tmp_path, env={**os.environ, **clock.env}, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as running:  # fmt: skip
        assert running.stdout is not None
        said = []
        for line in running.stdout:
            said.append(line)
            if "attempt 2" in line:
                clock.jump(to)
                (tmp_path / "jumped").touch()
        assert running.wait(60) == 0, said
    assert any("attempt 2" in line for line in said), said


BARRIER = """\
phase: init
tasks:
  - id: meet
    name: It waits for the other instance
    barrier: {backend: local, interval: 200ms, timeout: 3s}
    retries: 0
"""


SLEEP = "import select, time\ntime.sleep = lambda s: select.select([], [], [], s)\n"
"""libfaketime fails clock_nanosleep(2), by which Python sleeps, once the clock has jumped."""


@pytest.mark.slow
@pytest.mark.parametrize("comes", [True, False], ids=["the other comes", "nobody comes"])
@pytest.mark.parametrize("to", ["+1d", "-1d"])
def test_jump_while_the_barrier_waits(
    tmp_path: pathlib.Path, clock: Clock, to: str, comes: bool
) -> None:
    """It finds the instance that comes afterwards; else it ends at its timeout."""
    for name in ("pai", "gang/announce", "root/playbooks"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "sitecustomize.py").write_text(SLEEP)
    (tmp_path / "root/playbooks/init.yaml").write_text(BARRIER)
    framework = {
        "metadata": {"name": "f", "annotations": {"config": "x"}},
        "spec": {"taskRoles": [{"name": "w", "taskNumber": 2}]},
        "status": {"state": "AttemptRunning"},
    }
    (tmp_path / "gang/framework.json").write_text(json.dumps(framework))
    env = {
        "PATH": os.environ["PATH"], "PAIRUN_PAI_DIR": str(tmp_path / "pai"), "PAIRUN_BUNDLE": "",
        "RUNTIME_CONFIG": "commands: [echo hi]", "PAIRUN_GANG_DIR": str(tmp_path / "gang"),
        "PAIRUN_HOST_IP": "10.0.0.1", "FC_TASKROLE_NAME": "w", "FC_TASK_INDEX": "0",
        "FC_POD_UID": "uid-0", "PYTHONPATH": str(tmp_path), **clock.env,
    }  # fmt: skip
    argv = [sys.executable, "-m", "pairun", "init", "--root", str(tmp_path / "root")]
    with subprocess.Popen(
        argv, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as running:
        assert running.stdout is not None
        said = []
        for line in running.stdout:
            said.append(line)
            if "1 of 2" in line:
                break
        else:
            raise AssertionError(said)
        with Stopwatch() as watch:
            clock.jump(to)
            if comes:
                address = {"podUID": "uid-1", "podIP": "10.0.0.2", "podHostIP": "10.0.0.2"}
                (tmp_path / "gang/announce/w-1.json").write_text(json.dumps(address))
            said += running.stdout
    assert (running.returncode == 0) == comes, said
    if not comes:
        assert any("after 3s" in line for line in said), said
        assert watch.took_s > 2, watch
    assert watch.within(5, work_s=2), watch
