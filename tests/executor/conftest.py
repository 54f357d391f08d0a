"""Plans that run in this process, and plans that run in a process of their own."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from pairun.contract.loading import ModuleFile, plan_loader
from pairun.executor.phase import Executor, PhaseOutcome
from pairun.executor.shared import Shared
from pairun.plan import Group, Late, Peers, Plan, Step, Task
from pairun.report.console import Console
from pairun.secrets.vault import Vault
from pairun.volume.door import Door
from pairun.volume.journal import Journal, read_journal
from pairun.volume.planfile import SecretStore, dump_plan
from tests.doors import DoorWatch, InnerWatch

HERE = pathlib.Path(__file__).parent
WAIT_S = 30.0


def module_files() -> dict[str, ModuleFile]:
    """The modules of these tests, and `cmd`."""
    paths = [*HERE.glob("modules/*.py"), HERE.parents[1] / "modules" / "cmd.py"]
    return {
        p.stem: ModuleFile(
            path=str(p), sha256=hashlib.sha256(p.read_bytes()).hexdigest(), built_in=True
        )
        for p in paths
    }


class Here:
    """Runs plans in this process, with real attempts."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self.env: dict[str, str] = {"PATH": os.environ["PATH"]}
        self.secrets: list[str] = []
        self.results: dict[str, Any] = {}
        self.exports: dict[str, Any] = {}
        self.events: list[dict[str, Any]] = []
        self.modules = module_files()
        self.attempts: list[int] = []

    @staticmethod
    def task(name: str = "a", code: str = "", **more: Any) -> Task:
        """A task of the module `look`, unless ``module`` and ``args`` say otherwise."""
        args = more.pop("args", {"code": code})
        return Task(
            id=name, name=f"Task {name}", module=more.pop("module", "look"), args=args, **more
        )

    def run(
        self,
        *steps: Step,
        resolve: Callable[..., Any] | None = None,
        handlers: bool = True,
        budget_s: float | None = None,
        phase: Any = "init",
        grace_s: float = 30.0,
        peers: Peers | None = None,
    ) -> PhaseOutcome:
        """Run the steps and their exit handlers."""
        plan = Plan(phase=phase, steps=steps, modules=self.modules, grace_s=grace_s)
        vault = Vault(self.secrets)
        with open(self.folder / "console", "a", encoding="utf-8") as stream:
            console = Console(stream, vault)
            door, path = Door(str(self.folder)), str(self.folder / "journal.jsonl")
            journal = Journal(door, path, vault.record, console.say)

            def emit(event: dict[str, Any]) -> None:
                self.events.append(event)
                journal(event)
                console(event)

            shared = Shared(
                load=plan_loader(plan.modules),
                resolve=resolve or _look_up,
                emit=emit,
                vault=vault,
                env=dict(self.env),
                pai_dir=str(self.folder),
                peers=lambda: peers,
            )
            executor = Executor(plan, shared)
            # what pytest captures is no descriptor, and an attempt prints into descriptors
            plain = open(1, "w", encoding="utf-8", closefd=False)
            with plain, contextlib.redirect_stdout(plain), executor.loop:
                outcome = executor.run_tasks()
                if handlers:
                    outcome = executor.run_handlers(outcome, budget_s)
                executor.end(outcome)
            journal.close()
        for lines in executor.loop.lingering:
            os.close(lines.fd)
        self.results, self.exports = executor.shared.results, executor.shared.exports
        return outcome

    def of(self, kind: str, task: str | None = None) -> list[dict[str, Any]]:
        """The events of a kind, of one task."""
        return [e for e in self.events if e["type"] == kind and task in (None, e.get("task"))]

    def end(self, task: str = "a") -> dict[str, Any]:
        """How a task ended."""
        (event,) = self.of("task_end", task)
        return event

    def lines(self, task: str | None = None) -> list[str]:
        """What tasks printed."""
        return [e["line"] for e in self.of("output", task)]

    @property
    def console(self) -> str:
        """What people saw."""
        return (self.folder / "console").read_text()

    @property
    def journal(self) -> list[dict[str, Any]]:
        """The records that were kept."""
        return read_journal(str(self.folder / "journal.jsonl"))


def _look_up(late: Late, results: Mapping[str, Any], env: Mapping[str, str]) -> Any:
    """A late value of these tests is a Python expression over the results."""
    return eval(late.template, {"results": results, "env": env})


class There:
    """Runs plans in a process of their own."""

    def __init__(self, folder: pathlib.Path, watch: DoorWatch) -> None:
        self.folder = folder
        self.watch = watch
        self.prefix: list[str] = []
        self.lines: list[str] = []
        self.process: subprocess.Popen[str]
        self._news = threading.Condition()
        self._reader: threading.Thread | None = None

    def start(self, *steps: Step, grace_s: float = 10.0, phase: Any = "init") -> There:
        """Start the phase."""
        secrets = SecretStore()
        plan = Plan(phase=phase, steps=steps, modules=module_files(), grace_s=grace_s)
        document = {**dump_plan(plan, secrets), "secrets": secrets.dump()}
        (self.folder / "plan.json").write_text(json.dumps(document))
        self.process = subprocess.Popen(
            [*self.prefix, sys.executable, str(HERE / "driver.py"), str(self.folder)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=HERE.parents[1],
            env={
                **os.environ,
                **self.watch.env,
                "PYTHONPATH": f"{HERE.parents[1]}:{self.watch.env['PYTHONPATH']}",
            },
        )
        self.lines = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        return self

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._news:
                self.lines.append(line.rstrip("\n"))
                self._news.notify_all()

    def line(self, part: str) -> str:
        """Wait for a line that holds a text."""
        end = time.monotonic() + WAIT_S
        with self._news:
            while True:
                for line in self.lines:
                    if part in line:
                        return line
                assert self._news.wait(max(0.0, end - time.monotonic())), self.lines

    def signal(self, number: signal.Signals) -> None:
        """Signal the phase's process."""
        self.process.send_signal(number)

    def end(self) -> int:
        """Wait for the end; returns the exit code."""
        code = self.process.wait(WAIT_S)
        assert self._reader is not None
        self._reader.join(WAIT_S)
        return code

    def close(self) -> None:
        """Leave nothing behind."""
        if hasattr(self, "process"):
            self.process.kill()
            self.process.wait()
            assert self._reader is not None
            self._reader.join(WAIT_S)
            assert self.process.stdout is not None
            self.process.stdout.close()

    @property
    def journal(self) -> list[dict[str, Any]]:
        """The records that were kept."""
        return read_journal(str(self.folder / "journal.jsonl"))

    def of(self, kind: str, task: str | None = None) -> list[dict[str, Any]]:
        """The records of a kind, of one task."""
        return [r for r in self.journal if r["type"] == kind and task in (None, r.get("task"))]


@pytest.fixture
def here(tmp_path: pathlib.Path, report: pathlib.Path) -> Iterator[Here]:
    """Runs plans in this process; the volume is reached through the door alone."""
    with InnerWatch(tmp_path, report) as watch:
        yield Here(tmp_path)
    assert not watch.violations()


@pytest.fixture
def there(tmp_path: pathlib.Path, report: pathlib.Path) -> Iterator[There]:
    """Runs plans in a process of their own; the volume is reached through the door alone."""
    running = There(tmp_path, DoorWatch(tmp_path, report))
    yield running
    running.close()
    assert not running.watch.violations()


@pytest.fixture
def report(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Where calls beside the door are reported."""
    return tmp_path_factory.mktemp("watch") / "report"


@pytest.fixture
def group() -> Callable[..., Group]:
    """Makes a parallel group."""
    return lambda *tasks: Group(name="At once", tasks=tasks)


@pytest.fixture
def gone() -> Callable[[int], bool]:
    """Whether a process has ended, waiting for it; one that nobody waits for counts as ended."""

    def wait(pid: int) -> bool:
        end = time.monotonic() + WAIT_S
        while time.monotonic() < end:
            try:
                state = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
            except (FileNotFoundError, ProcessLookupError):
                return True
            if state in "ZX":
                return True
            time.sleep(0.005)
        return False

    return wait


@pytest.fixture
def lives() -> Callable[[int], bool]:
    """Whether a process runs now."""

    def look(pid: int) -> bool:
        try:
            text = pathlib.Path(f"/proc/{pid}/stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            return False
        return text.rpartition(")")[2].split()[0] not in "ZX"

    return look
