"""The plugin git."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

if TYPE_CHECKING:
    from pairun.testing import Outcome
    from tests.modules.conftest import Harness
from tests.modules.git_clone.conftest import ROOT


class Copy:
    """The runtime half of the plugin git: the code comes to ``clone_dir``."""

    def __init__(self, harness: Harness, commit_id: str = "1") -> None:
        (task,) = yaml.safe_load((ROOT / "plugin_specs" / "git.yaml").read_text())["runtime"]
        self.harness = harness
        self.code = harness.pai_dir / "code"
        (self.code / ".git").mkdir(parents=True)
        (self.code / ".git" / "pairun").write_text(commit_id)
        (self.code / ".hidden").write_text("h")
        (self.code / "..odd").write_text("o")
        (self.code / "a b").mkdir()
        (self.code / "a b" / "run").write_text("r")
        (self.code / "a b" / "run").chmod(0o755)
        (self.code / "link").symlink_to("nowhere")
        self.args: dict[str, Any] = task["cmd"]

    def run(self, to: Path, path: str = "") -> Outcome:
        """Copy."""
        env = {"CLONE_DIR": str(to), "CODE": str(self.code), **({"PATH": path} if path else {})}
        return self.harness.run("cmd", self.args, env)

    def complete(self, to: Path) -> bool:
        """Whether everything is there, and nothing else."""
        names = sorted(p.name for p in to.iterdir())
        return (
            names == sorted(p.name for p in self.code.iterdir())
            and (to / "a b" / "run").stat().st_mode & 0o777 == 0o755
            and (to / "link").is_symlink()
        )


@pytest.mark.parametrize("there", ["absent", "empty", "mount"])
def test_the_code_comes_to_clone_dir(harness: Harness, there: str) -> None:
    """All of it, hidden files too, over file systems, at a path with a space; once."""
    copy = Copy(harness)
    to = harness.tmp / "my code" / "here"
    if there != "absent":
        to.mkdir(parents=True)
    if there == "mount":
        if os.geteuid() != 0:
            pytest.skip("mounting needs root")
        subprocess.run(["mount", "-t", "tmpfs", "none", str(to)], check=True)
    try:
        assert copy.run(to).failure is None
        assert copy.complete(to)
        (to / "mine").write_text("x")
        again = copy.run(to)
        assert again.verdict is not None
        assert again.verdict.kind == "no_change"
    finally:
        if there == "mount":
            subprocess.run(["umount", str(to)], check=True)


def test_a_mirror_comes_to_clone_dir_once(harness: Harness) -> None:
    """Its own files are not below .git."""
    copy = Copy(harness)
    shutil.rmtree(copy.code)
    copy.code.mkdir()
    (copy.code / "HEAD").write_text("ref: refs/heads/main")
    (copy.code / "pairun").write_text("1")
    to = harness.tmp / "here"
    assert copy.run(to).failure is None
    assert sorted(p.name for p in to.iterdir()) == ["HEAD", "pairun"]
    again = copy.run(to)
    assert again.verdict is not None
    assert again.verdict.kind == "no_change"


@pytest.mark.parametrize("program", ["cp", "mv", "rmdir"])
@pytest.mark.parametrize("call", [1, 2, 3, 4])
def test_an_interrupted_copy_is_gone_on_with(harness: Harness, program: str, call: int) -> None:
    """Whatever step an attempt died at, before or after, the next one completes the copy."""
    for when in ("before", "after"):
        copy = Copy(harness)
        to = harness.tmp / "to"
        programs = harness.tmp / "programs"
        programs.mkdir()
        fake = programs / program
        real = shutil.which(program)
        run = f'{real} "$@"' if when == "after" else ":"
        count = f"{programs}/count"
        fake.write_text(
            f"#!/bin/sh\necho x >> {count}\nif [ $(wc -l < {count}) -eq {call} ]\n"
            f'then {run}; kill -9 $PPID; exit 1; fi\nexec {real} "$@"\n'
        )
        fake.chmod(0o755)
        first = copy.run(to, f"{programs}:{os.environ['PATH']}")
        if program == "mv" or call == 1:
            assert first.failure is not None
        if first.failure is not None:
            assert copy.run(to).failure is None
        assert copy.complete(to)
        for path in (to, copy.code, programs):
            shutil.rmtree(path)


@pytest.mark.parametrize("holds", ["a file", "another commit"])
def test_a_clone_dir_that_is_not_empty_is_an_error(harness: Harness, holds: str) -> None:
    """What is there stays as it is."""
    copy = Copy(harness)
    to = harness.tmp / "to"
    (to / ".git").mkdir(parents=True)
    (to / ".git" / ("pairun" if holds == "another commit" else "x")).write_text("2")
    failure = copy.run(to).failure
    assert failure is not None
    assert "is not empty" in "".join(harness.log) or failure.fault == "user"
    assert [p.name for p in to.iterdir()] == [".git"]
