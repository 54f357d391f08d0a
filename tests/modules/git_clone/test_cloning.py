"""Commits, submodules and Git LFS."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.modules.conftest import Harness
from tests.modules.git_clone.conftest import (
    CONTENT,
    POINTER,
    Served,
    clone_of,
    commit,
    git,
    repository,
    submodule,
)


@pytest.mark.parametrize("shallow", [False, True])
@pytest.mark.parametrize("fixed", [False, True])
def test_submodules_are_of_the_commit(
    harness: Harness, origin: Path, fixed: bool, shallow: bool
) -> None:
    """With --recursive the submodules are checked out as the commit has them, shallow too."""
    outer = repository(harness.tmp / "outer")
    inner = git(origin, "rev-parse", "main~1")
    submodule(outer, "sub", f"file://{origin}", inner)
    sha = git(outer, "rev-parse", "HEAD")
    more = {"commit": sha} if fixed else {}
    options = ["--recursive", "--jobs 2", *(["--depth=1 --shallow-submodules"] if shallow else [])]
    args = clone_of(harness, outer, options=options, **more)
    assert harness.run("git_clone", args).failure is None
    sub = harness.pai_dir / "code" / "sub"
    assert (sub / ".hidden").read_text() == "h"
    assert git(sub, "rev-parse", "HEAD") == inner
    assert not (sub / "second").exists()
    # and the comparison with what somebody did there sees into them
    (sub / "mine").write_text("x")
    commit(outer, "moved", "x")
    if not fixed:
        failure = harness.run("git_clone", args).failure
        assert failure is not None
        assert "sub/mine" in failure.message


def test_a_commit_on_no_branch(harness: Harness, origin: Path) -> None:
    """A commit that no branch holds any more is fetched by its full id; a short one is explained."""
    sha = commit(origin, "lost", "l")
    git(origin, "reset", "-q", "--hard", "HEAD~1")
    failure = harness.run("git_clone", clone_of(harness, origin, commit=sha[:10])).failure
    assert failure is not None
    assert "no commit" in failure.message
    assert "full id" in (failure.hint or "")
    for more in ({}, {"depth": 1}):
        args = clone_of(harness, origin, commit=sha, **more)
        args["dest"] += str(len(more))
        outcome = harness.run("git_clone", args)
        assert outcome.result is not None
        assert outcome.result.values == {"commit": sha}
        assert Path(args["dest"], "lost").exists()


@pytest.fixture
def without_lfs(harness: Harness) -> dict[str, str]:
    """A PATH on which everything but git-lfs is."""
    programs = harness.tmp / "without-lfs"
    programs.mkdir()
    for name in ("git", "sh", "find", "diff", "sed"):
        found = shutil.which(name)
        assert found is not None
        (programs / name).symlink_to(found)
    return {"PATH": str(programs)}


@pytest.fixture
def git_lfs() -> None:
    """The program git-lfs."""
    if shutil.which("git-lfs") is None:
        pytest.skip("needs the program git-lfs (Debian package git-lfs)")


@pytest.mark.usefixtures("git_lfs")
@pytest.mark.parametrize("fixed", [False, True])
def test_files_of_lfs_are_fetched(harness: Harness, large: Served, fixed: bool) -> None:
    """A file in LFS stands in the clone with its content, and a second run changes nothing."""
    args: dict[str, Any] = {"repo": large.address("large"), "dest": str(harness.pai_dir / "code")}
    if fixed:
        args["commit"] = git(large.root / "large.git", "rev-parse", "HEAD")
    assert harness.run("git_clone", args).failure is None
    assert (harness.pai_dir / "code" / "weights.bin").read_bytes() == CONTENT
    harness.changes_nothing(harness.make("git_clone", args))


def test_lfs_without_git_lfs_is_said(
    harness: Harness, large: Served, without_lfs: dict[str, str]
) -> None:
    """Without git-lfs the task fails in words, unless the pointers are wanted."""
    args: dict[str, Any] = {"repo": large.address("large"), "dest": str(harness.pai_dir / "code")}
    failure = harness.run("git_clone", args, without_lfs).failure
    assert failure is not None
    assert (failure.kind, failure.fault) == ("permanent", "platform")
    assert "git-lfs is missing" in failure.message
    assert harness.run("git_clone", {**args, "lfs": False}, without_lfs).failure is None
    assert (harness.pai_dir / "code" / "weights.bin").read_text() == POINTER


@pytest.mark.usefixtures("git_lfs")
@pytest.mark.parametrize(
    "config",
    [
        '[lfs]\n\tstandalonetransferagent = x\n[lfs "customtransfer.x"]\n\tpath = {script}\n',
        "[lfs]\n\turl = ssh://-oProxyCommand={script}/x\n",
        "[core]\n\tsshCommand = {script}\n[lfs]\n\turl = ssh://127.0.0.1:1/x\n",
        '[lfs "extension.x"]\n\tsmudge = {script}\n\tclean = {script}\n\tpriority = 0\n',
    ],
)
def test_an_lfs_configuration_starts_nothing(harness: Harness, large: Served, config: str) -> None:
    """What a repository says about its LFS store in .lfsconfig starts no program."""
    script = harness.tmp / "script"
    script.write_text(f"#!/bin/sh\ntouch {harness.tmp}/marker\n")
    script.chmod(0o755)
    commit(large.root / "large.git", ".lfsconfig", config.replace("{script}", str(script)))
    args = {"repo": large.address("large"), "dest": str(harness.pai_dir / "code")}
    harness.run("git_clone", args, {"GIT_LFS_SKIP_SMUDGE": "0"})
    assert not (harness.tmp / "marker").exists()
