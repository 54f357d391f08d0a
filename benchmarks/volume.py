"""A shared volume as init leaves it, and the program that is PID 1 on it."""

from __future__ import annotations

import json
import os
import pathlib
import sys

from benchmarks.measure import ROOT
from pairun.plan import Plan, Task
from pairun.volume.planfile import SecretStore, dump_plan
from pairun.volume.reader import Command

_BUNDLE = ROOT / "build" / "bundle" / "runtime"


def prepare(folder: pathlib.Path, script: str, secrets: tuple[str, ...] = ()) -> dict[str, str]:
    """Leave a plan of nothing but the user's command.

    Args:
        folder: the volume.
        script: the command.
        secrets: what no output may show.

    Returns:
        The environment of PID 1.
    """
    (folder / "logs" / "local").mkdir(parents=True)
    (folder / "runtime.d").mkdir()
    store = SecretStore(secrets)
    plan = Plan(
        phase="runtime",
        steps=(Task(id="user_command", name="The command", module="user_command", args={}),),
        modules={},
    )
    document = dump_plan(plan, store, Command(plan.grace_s))
    (folder / "runtime.d" / "plan.json").write_text(json.dumps(document))
    (folder / "runtime.d" / "secrets.json").write_text(json.dumps(store.dump()))
    (folder / "runtime.d" / "user.sh").write_text(script)
    env = {**os.environ, "PAIRUN_PAI_DIR": str(folder), "PAIRUN_TERMINATION_LOG": ""}
    env.pop("FC_POD_UID", None)
    return env


def program() -> tuple[list[str], str]:
    """The runtime phase: the bundle where there is one that is up to date, else this Python."""
    rooms = ("base", "volume", "runtime", "secrets")
    sources = [p for room in rooms for p in (ROOT / "pairun" / room).glob("*.py")]
    sources.append(ROOT / "bundle" / "_scan.c")
    if _BUNDLE.exists() and _BUNDLE.stat().st_mtime > max(s.stat().st_mtime for s in sources):
        return [str(_BUNDLE)], "the bundle"
    return [sys.executable, "-m", "pairun", "runtime"], "this Python, without a bundle"
