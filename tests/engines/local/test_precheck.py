"""The check of a job before any instance of it starts on this machine."""

from __future__ import annotations

import pathlib
from typing import Any


def test_warnings_of_plans_are_shown(job: Any, launch: Any, tmp_path: pathlib.Path) -> None:
    """A warning in the plans of several roles is printed once, and the job runs."""
    root = tmp_path / "root"
    (root / "playbooks").mkdir(parents=True)
    (root / "playbooks" / "init.yaml").write_text(
        "phase: init\n"
        "patches:\n"
        "- append:\n"
        "  id: tell\n"
        "  name: Tell the chat\n"
        "  notify: {url: 'http://127.0.0.1:9', tries: 1}\n"
    )
    job.role("w", "echo ran")
    job.role("v", "echo ran")
    run = launch("--no-namespace", "--root", str(root))
    assert run.end() == 0
    assert sum(line.startswith("warning[PR214]") for line in run.lines) == 1


def test_warnings_of_the_job_are_shown(job: Any, launch: Any) -> None:
    """What a review warns of is printed before the command runs into it."""
    job.role("w", "true <% $parameters.rate %> || true")
    run = launch("--no-namespace")
    run.end()
    warning, started = (
        next(n for n, line in enumerate(run.lines) if text in line)
        for text in ("warning[PR904]", "starting the command")
    )
    assert warning < started


def test_locked_tasks_do_not_stop_the_engine(job: Any, launch: Any, tmp_path: pathlib.Path) -> None:
    """A cluster locks tasks against jobs; `pairun run` still adapts them to this machine."""
    root = tmp_path / "root"
    (root / "playbooks").mkdir(parents=True)
    (root / "playbooks" / "init.yaml").write_text(
        "phase: init\n"
        "patches:\n"
        "- {patch: image_check, locked: true}\n"
        "- {patch: barrier, locked: true}\n"
    )
    job.role("w", "echo ran")
    run = launch("--no-namespace", "--root", str(root))
    assert run.end() == 0, run.text
    assert "ran" in run.said("w-0")
