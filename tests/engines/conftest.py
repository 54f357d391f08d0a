"""Whole jobs on this machine, with namespaces and without."""

from __future__ import annotations

import functools
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.doors import DoorWatch

WAIT_S = 40.0
DRIVER = """
import os, sys
import pairun.engines.local.jobrun as engine
from pairun.cli.main import main
base = engine.base_environment
watch = {n: os.environ[n] for n in os.environ if n == "PYTHONPATH" or n.startswith("DOOR_WATCH_")}
engine.base_environment = lambda: {**base(), **watch}
sys.exit(main(["run", *sys.argv[1:]]))
"""
"""``pairun run`` whose instances are watched: each opens its volume through the door alone."""
_LINE = re.compile(r"(\S+) +\| (.*)")


class Run:
    """A ``pairun run`` that runs, or has ended."""

    def __init__(self, process: subprocess.Popen[str], folder: pathlib.Path) -> None:
        self.process = process
        self.folder = folder
        self.lines: list[str] = []
        self._news = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._news:
                self.lines.append(line.rstrip("\n"))
                self._news.notify_all()

    @property
    def text(self) -> str:
        """Everything that was printed."""
        return "\n".join(self.lines)

    def wait_for(self, part: str) -> str:
        """Wait for a line that holds a text."""
        end = time.monotonic() + WAIT_S
        with self._news:
            while True:
                for line in self.lines:
                    if part in line:
                        return line
                assert self._news.wait(max(0.0, end - time.monotonic())), self.text

    def end(self) -> int:
        """Wait for the end; returns the exit code."""
        code = self.process.wait(WAIT_S)
        self._reader.join(WAIT_S)
        return code

    def said(self, instance: str) -> list[str]:
        """The lines of one instance, without its name."""
        matches = [m for line in self.lines if (m := _LINE.fullmatch(line))]
        return [m[2] for m in matches if m[1] == instance]

    def signal(self, number: signal.Signals) -> None:
        """Signal the engine."""
        self.process.send_signal(number)


class Job:
    """A job file in the making."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        # found in the command line of whatever a test leaves running
        self.mark = f"mark-{uuid.uuid4()}"
        self.document: dict[str, Any] = {
            "protocolVersion": 2,
            "name": "test",
            "type": "job",
            "prerequisites": [{"type": "dockerimage", "name": "i", "uri": "example.com/a/b:1"}],
            "taskRoles": {},
        }

    def role(self, name: str, *commands: str, instances: int = 1, **more: Any) -> Job:
        """Add a role."""
        self.document["taskRoles"][name] = {
            "instances": instances,
            "dockerImage": "i",
            "resourcePerInstance": {"cpu": 1, "memoryMB": 1, "gpu": 0},
            "commands": list(commands),
            **more,
        }
        return self

    def running(self) -> list[int]:
        """The processes that bear the mark."""
        found = []
        for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            try:
                if self.mark.encode() in path.read_bytes():
                    found.append(int(path.parent.name))
            except OSError:
                continue
        return found

    def save(self) -> pathlib.Path:
        """Write the file."""
        path = self.folder / "job.yaml"
        path.write_text(json.dumps(self.document))
        return path


@pytest.fixture
def job(tmp_path: pathlib.Path) -> Job:
    """A job without roles."""
    return Job(tmp_path)


@pytest.fixture
def launch(job: Job, tmp_path: pathlib.Path) -> Iterator[Callable[..., Run]]:
    """Starts ``pairun run`` on the job; further arguments are passed on."""
    started: list[Run] = []
    watch = DoorWatch(None, tmp_path / "door-watch")

    def start(*args: str, prefix: tuple[str, ...] = (), **env: str) -> Run:
        process = subprocess.Popen(
            [*prefix, sys.executable, "-c", DRIVER, str(job.save()), *args],
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, **watch.env, **env},
        )
        started.append(Run(process, tmp_path / "pairun-run" / "test"))
        return started[-1]

    yield start
    for run in started:
        if run.process.poll() is None:
            run.process.kill()
            run.process.wait()
        run._reader.join(WAIT_S)
        assert run.process.stdout is not None
        run.process.stdout.close()
    assert not watch.violations()


BOTH_MODES = pytest.mark.parametrize(
    "start", ["namespaces", pytest.param("rewritten", marks=pytest.mark.slow)], indirect=True
)
"""For tests of what differs without namespaces: paths, and who reaps and stops processes."""


@pytest.fixture
def start(request: pytest.FixtureRequest, launch: Callable[..., Run]) -> Callable[..., Run]:
    """Like `launch`, in namespaces; in both modes with `BOTH_MODES`."""
    mode = getattr(request, "param", "namespaces")
    extra = ("--no-namespace",) if mode == "rewritten" else ()
    if not extra and not _namespaces_work():
        pytest.skip("this kernel lets us make no namespaces")
    return lambda *args, **env: launch(*extra, *args, **env)


@functools.cache
def _namespaces_work() -> bool:
    user = [] if os.getuid() == 0 else ["--user", "--map-root-user"]
    argv = ["unshare", *user, "--mount", "--pid", "--fork", "--mount-proc", "true"]
    return subprocess.run(argv, check=False, capture_output=True).returncode == 0


@pytest.fixture
def eventually() -> Callable[[Callable[[], bool]], None]:
    """Waits until a condition holds."""

    def wait(condition: Callable[[], bool]) -> None:
        end = time.monotonic() + WAIT_S
        while not condition():
            assert time.monotonic() < end
            time.sleep(0.01)

    return wait
