"""What init leaves on the volume, the runtime phase can run."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
from typing import Any

import pytest

from pairun.contract.loading import ModuleFile
from pairun.contract.sources import read_source
from pairun.errors import PairunError
from pairun.handover.volume import Volume
from pairun.plan import Plan, Task

MODULE = pathlib.Path(__file__).parents[1] / "bundle" / "root" / "modules" / "python"
CODE = "result = 'from ' + ctx.pai_dir"


def plan_of(path: pathlib.Path) -> Plan:
    """A plan with one task, whose module is a folder."""
    source = read_source("python", str(path))
    file = ModuleFile(path=str(path), sha256=source.sha256(), built_in=False)
    task = Task(id="look", name="Look", module="python", args={"code": CODE})
    return Plan(phase="runtime", steps=(task,), modules={"python": file})


def hand_over(pai_dir: pathlib.Path, plan: Plan) -> None:
    """Leave a plan on a new volume."""
    pai_dir.mkdir()
    volume = Volume(str(pai_dir), dict(os.environ))
    volume.prepare()
    volume.hand_over(plan, ())


def run_tasks(pai_dir: pathlib.Path) -> subprocess.CompletedProcess[str]:
    """Run the tasks of a volume as PID 1 does; the state is in a file of the volume."""
    with open(pai_dir / "state", "wb") as state:
        return subprocess.run(
            [
                sys.executable, "-m", "pairun", "tasks", str(pai_dir), "--part", "tasks",
                "--state-out", str(state.fileno()),
            ],
            pass_fds=[state.fileno()], capture_output=True, text=True, timeout=60,
        )  # fmt: skip


def test_a_folder_is_copied_and_runs(tmp_path: pathlib.Path) -> None:
    """Every file of a module is in the runtime phase, where they import each other."""
    pai_dir = tmp_path / "pai"
    hand_over(pai_dir, plan_of(MODULE))
    copy = pai_dir / "runtime.d" / "modules" / "python"
    module: dict[str, Any] = json.loads((pai_dir / "runtime.d" / "plan.json").read_text())[
        "modules"
    ]
    assert module["python"]["path"] == str(copy)
    assert read_source("", str(copy)).files == read_source("", str(MODULE)).files
    done = run_tasks(pai_dir)
    assert done.returncode == 0, done.stdout + done.stderr
    results = json.loads((pai_dir / "state").read_text())["results"]
    assert results["look"]["values"] == {"result": f"from {pai_dir}"}


def test_a_copy_that_changed_is_not_run(tmp_path: pathlib.Path) -> None:
    """The runtime phase checks the digest over the whole folder."""
    pai_dir = tmp_path / "pai"
    hand_over(pai_dir, plan_of(MODULE))
    (pai_dir / "runtime.d" / "modules" / "python" / "more.py").write_text("")
    done = run_tasks(pai_dir)
    assert "PR703" in done.stdout + done.stderr


def test_a_module_that_changed_since_it_was_planned_is_not_copied(tmp_path: pathlib.Path) -> None:
    """Init hands over what was reviewed, or nothing."""
    folder = tmp_path / "python"
    folder.mkdir()
    for file, data in read_source("", str(MODULE)).files.items():
        (folder / file).write_bytes(data)
    plan = plan_of(folder)
    (folder / "running.py").write_text("1 / 0\n")
    with pytest.raises(PairunError) as e:
        hand_over(tmp_path / "pai", plan)
    assert e.value.problems[0].id == "PR703"
