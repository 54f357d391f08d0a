"""The original's documented examples through the whole product: review, a run here, manifests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from pairun.cli.main import main
from pairun.engines.manifest.choices import ENGINES
from pairun.job.jsyaml import JS
from pairun.playbook.document.reading import read_file
from tests.effort import rows
from tests.golden.test_openpai_jobs import OPENPAI, SERVER, VALID

pytestmark = pytest.mark.shared

KEY = "com.microsoft.pai.runtimeplugin"
STUBBED = ("ssh", "git", "tensorboard")
"""Plugins that need a network, or a daemon; their places and parameters are those of the job."""
RUN_S = 120.0


@pytest.mark.parametrize("file", VALID)
def test_a_review(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Both phases of every role are planned, and the command is the one that OpenPAI runs."""
    assert main(["--dry-run", "--json", str(OPENPAI / "jobs" / file)]) == 0
    roles = json.loads(capsys.readouterr().out)["roles"]
    assert {name: r["user_command"] for name, r in roles.items()} == {
        name: r["entrypoint"] for name, r in SERVER[file]["roles"].items()
    }
    for role in roles.values():
        assert [t["id"] for t in role["init"]][:1] == ["barrier"]
        assert role["runtime"][-1]["id"] == "user_command"


@pytest.mark.slow
@pytest.mark.parametrize("file", rows(VALID, 15))
def test_manifests_for_the_four_engines(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each engine has objects for it, with a Pod for every instance, or says why it cannot."""
    assert len(ENGINES) == 4
    for engine in ENGINES:
        argv = ["manifest", str(OPENPAI / "jobs" / file), "--engine", engine, "--image", "a/b:1"]
        code = main(argv)
        printed = capsys.readouterr()
        if code:
            # A plain Pod or a Job has no completion policy of roles.
            assert "error[PR780]" in printed.err, printed.err
            continue
        objects = [o for o in yaml.safe_load_all(printed.out) if o]
        assert "/usr/local/pai/runtime" in printed.out
        assert all(o["metadata"]["name"] for o in objects)


@pytest.mark.slow
@pytest.mark.parametrize("file", rows(VALID, 15))
def test_a_run_here_with_stub_commands(file: str, tmp_path: Path) -> None:
    """One instance of every role goes through both phases; its commands are read and not run."""
    job = _stubbed(file)
    (tmp_path / "job.json").write_text(json.dumps(job))
    done = subprocess.run(
        [
            sys.executable, "-m", "pairun", "run", "--instances", "1",
            "--root", str(_root(tmp_path)), "--workdir", str(tmp_path / "work"),
            str(tmp_path / "job.json"),
        ],
        capture_output=True, text=True, timeout=RUN_S, check=False,
        env={k: v for k, v in os.environ.items() if k not in ("PAIRUN_PATH", "PAI_CONFIG_DIR")},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    for role in job["taskRoles"]:
        assert "the stub of the command has run" in [
            line.partition("| ")[2] for line in done.stdout.splitlines() if line.startswith(f"{role}-0 ")
        ], done.stdout  # fmt: skip


def _stubbed(file: str) -> dict[str, Any]:
    """The job with commands that the shell reads as a text, and does nothing with."""
    job: dict[str, Any] = read_file(str(OPENPAI / "jobs" / file), "job", JS).plain()
    for role in job["taskRoles"].values():
        role["commands"] = _read_only(role["commands"], "the stub of the command has run")
        # So that no role is stopped because another one has ended.
        role["completion"] = {"minFailedInstances": 1, "minSucceededInstances": -1}
    for deployment in job.get("deployments") or ():
        for role in deployment["taskRoles"].values():
            for key in role:
                role[key] = _read_only(role[key], "the stub of a deployment has run")
    listed = (job.get("extras") or {}).get(KEY) or []
    parts = [i["parameters"] for i in listed if i.get("parameters")]
    for part in (*parts, *(job.get("prerequisites") or ())):
        for key in ("preCommands", "postCommands"):
            if key in part:
                part[key] = _read_only(part[key], f"the stub of {key} has run")
        for callback in part.get("callbacks") or ():
            callback["commands"] = _read_only(callback["commands"], "the stub of an event has run")
    return job


def _read_only(commands: list[str], says: str) -> list[str]:
    return ["cat >/dev/null <<'END_OF_STUB'", *commands, "END_OF_STUB", f"echo {says}"]


def _root(tmp_path: Path) -> Path:
    """A content root in which plugins that reach out only say that they were there."""
    specs = tmp_path / "root/plugin_specs"
    specs.mkdir(parents=True)
    for name in STUBBED:
        task = {"name": f"The stub of {name}", "cmd": {"argv": ["echo", f"the stub of {name}"]}}
        (specs / f"{name}.yaml").write_text(
            json.dumps({"summary": f"A stub of {name}", "runtime": [task]})
        )
    return specs.parent
