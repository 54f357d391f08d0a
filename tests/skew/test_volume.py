"""What init of 0.1 left on a volume, met by the runtime phase and the reports of today."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

OLD = Path(__file__).parent / "volume-0.1"


@pytest.fixture
def volume(tmp_path: Path) -> Path:
    """A copy of the old volume."""
    root = tmp_path / "pai"
    shutil.copytree(OLD / "runtime.d", root / "runtime.d")
    logs = root / "logs" / "local"
    logs.mkdir(parents=True)
    shutil.copy(OLD / "journal.jsonl", logs / "journal.jsonl")
    return root


def pairun(volume: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    """Run a command of today on the volume."""
    return subprocess.run(
        [sys.executable, "-m", "pairun", *argv],
        env={**os.environ, "PAIRUN_PAI_DIR": str(volume)},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def edit(volume: Path, **changes: object) -> None:
    """Change the old plan."""
    path = volume / "runtime.d" / "plan.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_an_old_plan_runs(volume: Path) -> None:
    """Its tasks, its command and its exit handlers; its secrets are masked."""
    done = pairun(volume, "runtime")
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    for line in ("warm ******", "at work as worker:0, not ******", "bye success"):
        assert line in said
    assert "sesame-opens" not in said


def test_an_old_plan_keeps_its_records(volume: Path) -> None:
    """Today's records are appended to the old journal, and a report reads both."""
    pairun(volume, "runtime")
    report = pairun(volume, "report", str(volume / "logs" / "local" / "journal.jsonl"), "--json")
    assert report.returncode == 0, report.stderr
    for task in ("barrier", "greet", "bye"):
        assert f'"{task}"' in report.stdout


def test_a_plan_of_another_schema_is_refused_by_name(volume: Path) -> None:
    """Nothing runs; the file, its schema and the one that is read are named."""
    edit(volume, schema=2)
    done = pairun(volume, "runtime")
    assert done.returncode == 1
    assert "PR702" in done.stderr
    assert "plan.json cannot be used: it has schema 2, this pairun reads 1" in done.stderr


def test_a_module_that_is_not_there_any_more_is_refused_by_name(volume: Path) -> None:
    """An old plan may name a module that today's roots do not have."""
    plan = json.loads((volume / "runtime.d" / "plan.json").read_text())
    modules = {**plan["modules"], "gone": {**plan["modules"]["cmd"], "path": "modules/gone.py"}}
    steps = [{"id": "gone", "name": "Gone", "module": "gone", "args": {}}, plan["steps"][-1]]
    edit(volume, modules=modules, steps=steps)
    done = pairun(volume, "runtime")
    said = done.stdout + done.stderr
    assert done.returncode == 255, said
    assert "gone" in said
    assert "at work" not in said
