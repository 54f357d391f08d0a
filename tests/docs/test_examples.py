"""The examples do what they say when somebody runs them as they are."""

from __future__ import annotations

import pathlib
import signal
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]


def _until_stopped(job: pathlib.Path, folder: pathlib.Path) -> list[str]:
    """Run a job, stop it with Ctrl-C after its first step, and return what it printed."""
    command = [sys.executable, "-m", "pairun", "run", str(job), "--workdir", str(folder)]
    lines = []
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        try:
            for line in run.stdout:
                lines.append(line.strip().removeprefix("worker-0 | "))
                if lines[-1].startswith("step "):
                    run.send_signal(signal.SIGINT)
                    break
            lines += [line.strip().removeprefix("worker-0 | ") for line in run.stdout]
            assert run.wait(60) == 130, lines
        finally:
            run.kill()
    return lines


@pytest.mark.slow
def test_a_stopped_job_goes_on_at_its_checkpoint(tmp_path: pathlib.Path) -> None:
    """The example of a stop in steps saves when it is stopped, and the next run begins there."""
    text = (ROOT / "examples/checkpoint.yaml").read_text()
    assert text.count("/tmp/pairun-checkpoint") == 1
    job = tmp_path / "checkpoint.yaml"
    job.write_text(text.replace("/tmp/pairun-checkpoint", str(tmp_path / "saved")))
    before = _until_stopped(job, tmp_path / "run")
    assert "begins at step 0" in before
    (said,) = (line for line in before if line.startswith("saved at step "))
    assert f"begins at {said.removeprefix('saved at ')}" in _until_stopped(job, tmp_path / "run")
