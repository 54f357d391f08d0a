"""The runtime phase as a real process: plain, and as PID 1 of a PID namespace."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import pathlib
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pairun.base.forwarding import read_forwarding
from pairun.base.paths import PLAIN_FILES
from pairun.volume.reader import PLAN_SCHEMA
from tests.doors import DoorWatch

HERE = pathlib.Path(__file__).parent
DRIVER = f"""
import os, sys
import pairun.runtime.children as c, pairun.runtime.main as m
c.own_command = lambda *args, own=c.own_command: (
    [sys.executable, {str(HERE / "fake_tasks.py")!r}, *args] if args[0] == "tasks" else own(*args)
)
exec(os.environ.pop("TEST_PATCH", ""))
sys.exit(m.main(sys.argv[1], m.Vault()))
"""
NAMESPACE = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
if os.getuid() != 0:
    NAMESPACE += ["--user", "--map-root-user"]
WAIT_S = 60.0

WAITS_FOR_EVER = """
import pairun.runtime.supervisor as supervisor
supervisor._DRAIN_S = supervisor.TERM_S = supervisor.SWEEP_S = 600.0
"""
"""A patch of the phase: what is waited for without need takes longer than a test."""


@functools.cache
def namespaces_work() -> bool:
    """Whether this kernel lets us make a PID namespace."""
    return subprocess.run([*NAMESPACE, "true"], check=False, capture_output=True).returncode == 0


class Volume:
    """A shared volume as init leaves it."""

    def __init__(self, root: pathlib.Path) -> None:
        self.root = root
        self.files = root / "runtime.d"
        self.files.mkdir(parents=True)
        (root / "run").mkdir()
        self.plan: dict[str, Any] = {
            "schema": PLAN_SCHEMA,
            "command": {"grace_s": 10.0},
            "steps": [{"id": "user_command", "name": "The command", "module": "user_command"}],
        }
        self.env(PAI_TASK_INDEX="0")
        self.save()

    def save(self) -> None:
        """Write the plan."""
        (self.files / "plan.json").write_text(json.dumps(self.plan))

    def env(self, **values: str) -> None:
        """Write the variables of the job."""
        quoted = {k: v.replace("'", "'\\''") for k, v in values.items()}
        lines = [f"export {k}='{v}'\n" for k, v in quoted.items()]
        (self.files / "runtime_env.sh").write_text("".join(lines))

    def command(self, script: str) -> None:
        """Write the user's command."""
        (self.files / "user.sh").write_text(script)

    def args(self, **args: Any) -> None:
        """Give the command's task arguments."""
        command = self.plan["command"]
        forwarding = read_forwarding(args.pop("signals", None), args.pop("signals_to", None))
        rewrite = {n: [s._asdict() for s in steps] for n, steps in forwarding.rewrite.items()}
        command["forwarding"] = {"to_group": forwarding.to_group, "rewrite": rewrite}
        if "shell" in args:
            command["shells"] = [args.pop("shell")]
        command.update(args)
        self.save()

    def tasks(self, **wanted: Any) -> None:
        """Let a task come before the command, and say what the stand-in does."""
        if len(self.plan["steps"]) == 1:
            self.plan["steps"].insert(0, {"id": "a", "name": "A task", "module": "cmd"})
            self.plan["command"]["has_tasks"] = True
        self.save()
        (self.root / "fake.json").write_text(json.dumps(wanted))


class Running:
    """A runtime phase that runs."""

    def __init__(self, process: subprocess.Popen[str], *, namespace: bool) -> None:
        self.process = process
        self.namespace = namespace
        self.lines: list[str] = []
        self._queue: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=self._pump, daemon=True).start()

    def _pump(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._queue.put(line.rstrip("\n"))
        self._queue.put(None)

    @property
    def pid(self) -> int:
        """The phase's process, as this test sees it."""
        if not self.namespace:
            return self.process.pid
        path = f"/proc/{self.process.pid}/task/{self.process.pid}/children"
        return int(pathlib.Path(path).read_text().split()[0])

    def line(self, start: str | tuple[str, ...], wait_s: float = WAIT_S) -> str:
        """Wait for a line that begins so (or so)."""
        end = time.monotonic() + wait_s
        while True:
            line = self._queue.get(timeout=max(0.0, end - time.monotonic()))
            assert line is not None, f"no line {start!r} in {self.lines}"
            self.lines.append(line)
            if line.startswith(start):
                return line

    def signal(self, number: signal.Signals) -> None:
        """Signal the phase's process."""
        os.kill(self.pid, number)

    def end(self) -> int:
        """Wait for the end; returns the exit code."""
        code = self.process.wait(WAIT_S)
        while (line := self._queue.get(timeout=WAIT_S)) is not None:
            self.lines.append(line)
        return code

    def got(self, start: str) -> list[str]:
        """The lines so far that begin so."""
        return [line for line in self.lines if line.startswith(start)]


@pytest.fixture
def volume(tmp_path: pathlib.Path) -> Volume:
    """An empty volume with a plan of nothing but the command."""
    return Volume(tmp_path / "pai")


BOTH_WAYS = {
    "test_dumb_init", "test_grace", "test_onstop", "test_phases", "test_reaping", "test_robust",
    "test_signals",
}  # fmt: skip
"""The files of tests on which it bears whether the phase is PID 1."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run the tests of `BOTH_WAYS` as a plain process too."""
    if (
        "start" in metafunc.fixturenames
        and metafunc.module.__name__.rpartition(".")[2] in BOTH_WAYS
    ):
        metafunc.parametrize("start", ["plain", "pid1"], indirect=True)


@pytest.fixture
def start(request: pytest.FixtureRequest, volume: Volume) -> Iterator[Callable[..., Running]]:
    """Starts the phase on the volume: as PID 1 of a namespace where the kernel lets us make one.

    A test of `BOTH_WAYS` says which way it is.
    """
    way = getattr(request, "param", "pid1" if namespaces_work() else "plain")
    namespace = way == "pid1"
    if namespace and not namespaces_work():
        pytest.skip("this kernel lets us make no PID namespace")
    with _starter(volume, namespace=namespace) as begin:

        def run(**env: str) -> Running:
            return begin([sys.executable, "-c", DRIVER, str(volume.root)], **env)

        yield run


@pytest.fixture
def in_namespace(volume: Volume) -> Iterator[Callable[..., Running]]:
    """Starts a program as PID 1 of a namespace; without one, the phase on the volume."""
    if not namespaces_work():
        pytest.skip("this kernel lets us make no PID namespace")
    with _starter(volume, namespace=True) as begin:

        def run(*argv: str, **env: str) -> Running:
            return begin(list(argv) or [sys.executable, "-c", DRIVER, str(volume.root)], **env)

        yield run


@contextlib.contextmanager
def _starter(volume: Volume, *, namespace: bool) -> Iterator[Callable[..., Running]]:
    started: list[Running] = []
    watch = DoorWatch(volume.root, volume.root.parent / "door-watch")

    def begin(argv: list[str], **env: str) -> Running:
        process = subprocess.Popen(
            [*(NAMESPACE if namespace else []), *argv],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, PLAIN_FILES: "1", **watch.env, **env},
        )
        started.append(Running(process, namespace=namespace))
        return started[-1]

    yield begin
    for running in started:
        if running.process.poll() is None:
            running.process.kill()
            running.process.wait()
        assert running.process.stdout is not None
        running.process.stdout.close()
    assert not watch.violations()


@pytest.fixture
def waits_for_ever() -> dict[str, str]:
    """Starts a phase in which a needless wait would take longer than the test."""
    return {"TEST_PATCH": WAITS_FOR_EVER}


@pytest.fixture
def driver() -> list[str]:
    """The command line that starts the phase; the volume's path is to follow."""
    return [sys.executable, "-c", DRIVER]


@pytest.fixture
def print_signals() -> str:
    """The command line of the program that prints the signals it gets."""
    return f"{sys.executable} {HERE / 'print_signals.py'}"


@pytest.fixture
def succeeded() -> dict[str, Any]:
    """What the tasks leave when all went well and one exit handler is to run."""
    return {
        "outcome": "success", "exit_code": 0, "registered": ["undo"], "results": {},
        "environment": {},
    }  # fmt: skip


@pytest.fixture
def eventually() -> Callable[[Callable[[], bool]], None]:
    """Waits until a condition holds."""

    def wait(condition: Callable[[], bool]) -> None:
        end = time.monotonic() + WAIT_S
        while not condition():
            assert time.monotonic() < end
            time.sleep(0.01)

    return wait
