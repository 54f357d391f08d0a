"""A program of a plugin folder may read passwords that pairun never sees: its scripts stay closed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.test_init import JOB, ROOT

PASSWORD = "t34m-p4ssw0rd-Zq7"
PROGRAM = """
import sys
password = open({credential!r}).read()
with open(sys.argv[2], "w") as script:
    script.write(f"#!/bin/bash\\n: mount -t cifs -o vers=3.0,username=team,password={{password}} //s/x /mnt\\n")
    script.write(f"echo 'mounted with password={{password}}'; echo {{password}} >&2\\n")
"""


@pytest.mark.slow
def test_a_password_in_the_script_of_a_program(tmp_path: Path) -> None:
    """No output shows it, and it is in no file that others may read."""
    plugin = tmp_path / "root/plugins/team"
    plugin.mkdir(parents=True)
    (plugin / "desc.yaml").write_text("name: team\ninit-script: init.py\n")
    credential = tmp_path / "credential"
    credential.write_text(PASSWORD)
    (plugin / "init.py").write_text(PROGRAM.format(credential=str(credential)))
    document = json.loads(json.dumps(JOB))
    document["taskRoles"]["worker"] |= {"instances": 1, "commands": ["echo the command"]}
    document["extras"] = {"com.microsoft.pai.runtimeplugin": [{"plugin": "team", "parameters": {}}]}
    (tmp_path / "job.yaml").write_text(json.dumps(document))
    work = tmp_path / "work"
    done = subprocess.run(
        [sys.executable, "-m", "pairun", "run", str(tmp_path / "job.yaml"), "--no-namespace",
         "--root", str(tmp_path / "root"), "--workdir", str(work)],
        cwd=ROOT, capture_output=True, text=True, timeout=120, check=False,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "mounted with" in done.stdout
    assert PASSWORD not in done.stdout + done.stderr
    holding = {p for p in work.rglob("*") if p.is_file() and PASSWORD.encode() in p.read_bytes()}
    assert {p.name for p in holding} == {"plugin_pre0.sh", "secrets.json"}
    assert [p for p in holding if p.stat().st_mode & 0o077] == []
