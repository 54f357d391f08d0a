"""A shared volume as init leaves it, its size, and the program that is PID 1 on it."""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import sys
import sysconfig
from collections.abc import Iterator

from benchmarks.init_phase import prepared
from benchmarks.measure import ROOT, NotMeasured, Row, fixed
from pairun.contract.loading import ModuleFile
from pairun.plan import Plan, Task
from pairun.volume.bundle import find_bundle
from pairun.volume.planfile import SecretStore, dump_plan
from pairun.volume.reader import Command

GOAL_MB = 19.7
"""What it was before the volume was measured at all."""

_BUNDLE = ROOT / "build" / "bundle" / "runtime"


def prepare(
    folder: pathlib.Path, script: str, secrets: tuple[str, ...] = (), tasks: tuple[Task, ...] = ()
) -> dict[str, str]:
    """Leave a plan of the user's command.

    Args:
        folder: the volume.
        script: the command.
        secrets: what no output may show.
        tasks: what runs before the command.

    Returns:
        The environment of PID 1.
    """
    store = SecretStore(secrets)
    plan = Plan(
        phase="runtime",
        steps=(*tasks, Task(id="user_command", name="The command", module="user_command", args={})),
        modules={t.module: built_in(t.module) for t in tasks},
    )
    leave_plan(folder, plan, store, Command(plan.grace_s, has_tasks=bool(tasks)))
    (folder / "runtime.d" / "user.sh").write_text(script)
    env = {**os.environ, "PAIRUN_PAI_DIR": str(folder), "PAIRUN_TERMINATION_LOG": ""}
    env.pop("FC_POD_UID", None)
    return env


def leave_plan(
    folder: pathlib.Path, plan: Plan, store: SecretStore, command: Command | None = None
) -> None:
    """Leave a plan and its secrets on a volume as init does."""
    (folder / "logs" / "local").mkdir(parents=True)
    (folder / "runtime.d").mkdir()
    document = dump_plan(plan, store, command)
    (folder / "runtime.d" / "plan.json").write_text(json.dumps(document))
    (folder / "runtime.d" / "secrets.json").write_text(json.dumps(store.dump()))


def built_in(name: str) -> ModuleFile:
    """A module of this checkout, as init writes it into the plan."""
    path = ROOT / "modules" / f"{name}.py"
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    return ModuleFile(path=str(path), sha256=sha256, built_in=True)


def program() -> tuple[list[str], str]:
    """The runtime phase: the bundle where there is one that is up to date, else this Python."""
    rooms = ("base", "volume", "runtime", "secrets")
    sources = [p for room in rooms for p in (ROOT / "pairun" / room).glob("*.py")]
    sources.append(ROOT / "bundle" / "_scan.c")
    if _BUNDLE.exists() and _BUNDLE.stat().st_mtime > max(s.stat().st_mtime for s in sources):
        return [str(_BUNDLE)], "the bundle"
    return [sys.executable, "-m", "pairun", "runtime"], "this Python, without a bundle"


def rows() -> Iterator[Row]:
    """What init writes for a job without ssh or storage, beside the Python that the phase needs.

    Raises:
        NotMeasured: there is no bundle.
    """
    if not find_bundle(os.environ):
        raise NotMeasured("the volume: there is no bundle; `make bundle` builds it")
    with prepared(plugins=()) as pod:
        before = _size(pod.volume)
        pod.run()
        written = _size(pod.volume) - before
    yield Row(
        "init writes to the volume", "MB", fixed(written / 1e6), GOAL_MB,
        "a Python with its library", fixed(_python_size() / 1e6),
        f"without the program {(written - _program_size()) / 1000:.0f} kB",
    )  # fmt: skip


def _program_size() -> int:
    bundle = find_bundle(os.environ)
    assert bundle is not None
    return os.path.getsize(bundle)


def _python_size() -> int:
    """The program, and the standard library as it lies on a disk, without tests and packages."""
    library = pathlib.Path(sysconfig.get_path("stdlib"))
    left_out = {"site-packages", "dist-packages", "test", "tests", "idlelib", "__pycache__"}
    sizes = (
        (pathlib.Path(folder) / name).stat().st_size
        for folder, _, names in os.walk(library)
        if not left_out & {*pathlib.Path(folder).parts}
        for name in names
    )
    return sum(sizes) + os.path.getsize(os.path.realpath(f"/proc/{os.getpid()}/exe"))


def _size(folder: pathlib.Path) -> int:
    return sum(p.lstat().st_size for p in folder.rglob("*") if p.is_file() and not p.is_symlink())
