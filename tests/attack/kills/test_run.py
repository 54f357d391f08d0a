"""`pairun run` is killed at any moment, with all instances, and runs again as if nothing had happened."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from pairun.base.runfolders import PREVIOUS
from tests.attack.kills.killing import Tree, moments
from tests.cli.test_init import ROOT
from tests.effort import cases

KILLS = cases(3)
UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
SECRET = "s3cr3t-of-the-run"
JOB = f"""\
protocolVersion: 2
name: killed
type: job
secrets: {{token: {SECRET}}}
prerequisites:
- {{name: i, type: dockerimage, uri: example.com/a/b:1}}
taskRoles:
  first:
    instances: 2
    dockerImage: i
    resourcePerInstance: {{cpu: 1, memoryMB: 10, gpu: 0, ports: {{http: 1}}}}
    completion: {{minSucceededInstances: -1}}
    commands: ['echo "with <% $secrets.token %>"', 'echo kept > $PAI_WORK_DIR/result || true']
  second:
    dockerImage: i
    resourcePerInstance: {{cpu: 1, memoryMB: 10, gpu: 0}}
    completion: {{minSucceededInstances: -1}}
    commands: [echo done]
"""


def start(folder: Path) -> Tree:
    """Start the run, with all instances in a namespace of its own."""
    argv = [sys.executable, "-m", "pairun", "run", str(folder / "job.yaml"), "--no-namespace"]
    env = {"HOME": str(folder)}
    return Tree([*argv, "--workdir", str(folder / "work")], ROOT, env)


def left(folder: Path) -> dict[str, str]:
    """Every path of the last run and its mode."""
    return {
        UID.sub("UID", str(p.relative_to(folder))): stat.filemode(p.lstat().st_mode)
        for p in sorted(folder.rglob("*"))
        if PREVIOUS not in p.relative_to(folder).parts
    }


@pytest.mark.slow
def test_run_killed_at_any_moment(tmp_path: Path) -> None:
    """The next run in the same folder ends well, and leaves the same files with the same modes."""
    (tmp_path / "job.yaml").write_text(JOB)
    work = tmp_path / "work"
    code, printed, _ = start(tmp_path).end()
    assert code == 0, printed
    expected = left(work)
    assert any(path.endswith("secrets.json") for path in expected)
    code, printed, seconds = start(tmp_path).end()
    assert code == 0, printed
    for moment in moments(KILLS, seconds, seed=18):
        printed = start(tmp_path).kill_after(moment)
        assert SECRET not in printed
        code, printed, _ = start(tmp_path).end()
        assert code == 0, (moment, printed)
        assert SECRET not in printed
        assert left(work) == expected, moment
        report = subprocess.run(
            [sys.executable, "-m", "pairun", "report", "--json", str(work)],
            capture_output=True, text=True, env={"PATH": os.environ["PATH"]}, check=False,
        )  # fmt: skip
        assert report.returncode == 0, report.stderr
        assert json.loads(report.stdout)["schema"]
