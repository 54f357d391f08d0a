"""What init of 0.1 left on a volume, met by the runtime phase and the reports of today."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

OLD = Path(__file__).parent / "volume-0.1"
SEED = OLD.parents[1] / "attack" / "fuzz" / "seeds" / "volume"


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


def test_an_old_plan_is_refused_by_name(volume: Path) -> None:
    """Nothing runs; the file, its schema and the one that is read are named."""
    for command in (["runtime"], ["runtime", "--dry-run"]):
        done = pairun(volume, *command)
        assert done.returncode == 1
        assert "error[PR702]" in done.stderr
        assert "plan.json cannot be used: it has schema 1, this pairun reads 2" in done.stderr
        assert "at work" not in done.stdout


def test_todays_records_continue_an_old_journal(volume: Path) -> None:
    """A report reads both."""
    shutil.rmtree(volume / "runtime.d")
    shutil.copytree(SEED / "runtime.d", volume / "runtime.d")
    done = pairun(volume, "runtime")
    assert done.returncode == 0, done.stdout + done.stderr
    report = pairun(volume, "report", str(volume / "logs" / "local" / "journal.jsonl"), "--json")
    assert report.returncode == 0, report.stderr
    for task in ("barrier", "greet", "bye"):
        assert f'"{task}"' in report.stdout
