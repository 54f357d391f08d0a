"""What an operator applies: rights, and the cluster layer."""

from __future__ import annotations

import pathlib
import shutil
import subprocess
import sys
from typing import Any

import pytest
import yaml

from pairun.errors import Problems, Source
from pairun.openpai.exitspec import read_exit_spec

DEPLOY = pathlib.Path(__file__).parents[2] / "deploy"
FOLDERS = sorted(p.parent for p in DEPLOY.glob("*/kustomization.yaml"))


def _documents(folder: pathlib.Path) -> list[dict[str, Any]]:
    """Every object that a folder applies, those of the folders it builds on included."""
    found = []
    for name in yaml.safe_load((folder / "kustomization.yaml").read_text())["resources"]:
        path = folder / name
        if path.is_dir():
            found += _documents(path.resolve())
        else:
            found += [d for d in yaml.safe_load_all(path.read_text()) if d]
    return found


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda f: f.name)
def test_the_rights_are_the_least(folder: pathlib.Path) -> None:
    """Only Events may be written, no Secret read, and nothing seen beyond the namespace."""
    for document in _documents(folder):
        assert document["kind"] in ("ServiceAccount", "Role", "RoleBinding")
        for rule in document.get("rules", ()):
            if folder.name == "events":
                assert (rule["resources"], rule["verbs"]) == (["events"], ["create"])
                continue
            assert set(rule["resources"]) <= {"pods", "frameworks"}
            assert set(rule["verbs"]) <= {"get", "list", "watch"}


def test_the_account_gives_no_token_by_itself() -> None:
    """A Pod has a token only where its manifest projects one."""
    accounts = [d for d in _documents(DEPLOY / "base") if d["kind"] == "ServiceAccount"]
    assert [a["automountServiceAccountToken"] for a in accounts] == [False]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda f: f.name)
def test_every_file_that_is_named_is_there(folder: pathlib.Path) -> None:
    """A ConfigMap is made of files of its folder, under the names that pairun reads."""
    kustomization = yaml.safe_load((folder / "kustomization.yaml").read_text())
    for generator in kustomization.get("configMapGenerator", ()):
        assert generator["name"] == "runtime-exit-spec-configuration"
        for name in generator["files"]:
            assert (folder / name).is_file()


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_another_account_gets_the_same_rights() -> None:
    """The folder replaces the account's name, and nothing else."""

    def made(folder: str) -> str:
        argv = ["kubectl", "kustomize", str(DEPLOY / folder)]
        return subprocess.run(argv, capture_output=True, text=True, check=True).stdout

    assert made("other-account") == made("openpai").replace("runtime-account", "blob-access-pod-sa")


def test_the_cluster_layer_is_valid(tmp_path: pathlib.Path) -> None:
    """A job is planned with the layer on top, without a problem, and what it says holds."""
    job = DEPLOY.parent / "examples" / "hello.yaml"
    argv = [sys.executable, "-m", "pairun", "--dry-run", "--why", "barrier.args.timeout", str(job)]
    env = {"PAI_CONFIG_DIR": str(DEPLOY / "base" / "cluster"), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(argv, capture_output=True, text=True, env=env, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "20m" in done.stdout
    assert "cluster" in done.stdout


def test_the_exit_spec_is_valid() -> None:
    """Every entry counts: nothing in the table is left out for a mistake."""
    problems = Problems()
    path = DEPLOY / "exit-spec" / "runtime-exit-spec.yaml"
    spec = read_exit_spec(Source(str(path), "cluster", path.read_text()), problems)
    assert list(problems) == []
    assert len(spec.data["specs"]) == len(yaml.safe_load(path.read_text()))
