"""A clone that is at the destination already."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.modules.conftest import Harness
from tests.modules.git_clone.conftest import Served, clone_of, commit, git
from tests.webserver import Answer

# Whole jobs, phase by phase: `make test` leaves them to `make test-slow`.
pytestmark = pytest.mark.slow


@pytest.mark.parametrize("change", ["moved", "rewritten", "commit", "branch", "tag"])
def test_a_clone_that_is_there_is_brought_along(
    harness: Harness, origin: Path, change: str
) -> None:
    """A branch that moved, or another commit, branch or tag, replaces an untouched clone."""
    args = clone_of(harness, origin)
    assert harness.run("git_clone", args).failure is None
    if change == "moved":
        commit(origin, "fourth", "4")
    elif change == "rewritten":
        git(origin, "reset", "-q", "--hard", "main~1")
        commit(origin, "other", "o")
    else:
        wanted = {"commit": git(origin, "rev-parse", "side"), "branch": "side", "tag": "v1"}
        args["commit" if change == "commit" else "branch"] = wanted[change]
    sha = git(origin, "rev-parse", {"tag": "v1^{commit}"}.get(change, "main"))
    if change in ("commit", "branch"):
        sha = git(origin, "rev-parse", "side")
    module = harness.make("git_clone", args)
    outcome = harness.run("git_clone", args)
    assert outcome.verdict is not None
    assert outcome.verdict.kind == "will_change"
    assert outcome.failure is None
    dest = harness.pai_dir / "code"
    assert git(dest, "rev-parse", "HEAD") == sha
    assert git(dest, "status", "--porcelain") == ""
    assert [p.name for p in harness.pai_dir.iterdir()] == ["code"]
    harness.changes_nothing(module)


def _committed(dest: Path) -> None:
    commit(dest, "mine", "x")


def _stashed(dest: Path) -> None:
    (dest / "second").write_text("mine")
    git(dest, "stash", "-q")


def _branched(dest: Path) -> None:
    git(dest, "checkout", "-q", "-b", "mine")
    commit(dest, "mine", "x")
    git(dest, "pack-refs", "--all")
    git(dest, "checkout", "-q", "main")


CHANGES: list[tuple[str, Callable[[Path], object], str]] = [
    ("a file", lambda d: (d / "second").write_text("mine"), "files that were changed"),
    ("a new file", lambda d: (d / "mine").write_text("x"), "changed or added: mine"),
    ("a hidden file", lambda d: (d / ".mine").write_text("x"), "changed or added: .mine"),
    ("a removed file", lambda d: (d / "second").unlink(), "changed or added: second"),
    ("a mode", lambda d: (d / "second").chmod(0o755), "changed or added: second"),
    ("a commit", _committed, "commits that the git server does not have"),
    ("a stash", _stashed, "commits that the git server does not have"),
    ("a branch", _branched, "commits that the git server does not have"),
]


@pytest.mark.parametrize(("what", "change", "says"), CHANGES, ids=lambda v: str(v)[:20])
def test_what_somebody_did_is_never_lost(
    harness: Harness, origin: Path, what: str, change: Callable[[Path], object], says: str
) -> None:
    """A clone with work in it is not replaced: an error says what is there."""
    args = clone_of(harness, origin)
    assert harness.run("git_clone", args).failure is None
    dest = harness.pai_dir / "code"
    change(dest)
    commit(origin, "fourth", "4")
    before = {p: p.lstat().st_ino for p in dest.rglob("*")}
    failure = harness.run("git_clone", args).failure
    assert failure is not None, what
    assert (failure.kind, failure.fault) == ("permanent", "user")
    assert says in failure.message
    assert failure.hint
    assert {p: p.lstat().st_ino for p in dest.rglob("*")} == before
    assert [p.name for p in harness.pai_dir.iterdir()] == ["code"]


def test_nothing_in_a_clone_that_is_there_is_executed(harness: Harness, origin: Path) -> None:
    """A clone whose own configuration starts programs is compared without starting them."""
    args = clone_of(harness, origin)
    assert harness.run("git_clone", args).failure is None
    dest = harness.pai_dir / "code"
    marker = harness.tmp / "marker"
    hook = dest / ".git" / "hooks"
    hook.mkdir(exist_ok=True)
    for name in ("post-checkout", "reference-transaction", "post-index-change"):
        (hook / name).write_text(f"#!/bin/sh\ntouch {marker}\n")
        (hook / name).chmod(0o755)
    for key in ("core.fsmonitor", "core.sshCommand", "filter.x.clean", "diff.external"):
        git(dest, "config", key, f"touch {marker}; false")
    (dest / ".git" / "info").mkdir(exist_ok=True)
    (dest / ".git" / "info" / "attributes").write_text("* filter=x\n")
    os.utime(dest / "second")
    commit(origin, "fourth", "4")
    assert harness.run("git_clone", args).failure is None
    assert (dest / "fourth").exists()
    assert not marker.exists()
    # The trap is a real one.
    hook.mkdir(exist_ok=True)
    git(dest, "config", "core.fsmonitor", f"touch {marker}; false")
    git(dest, "status")
    assert marker.exists()


def test_a_server_that_is_away_costs_no_clone(harness: Harness, served: Served) -> None:
    """A clone that is there holds when the server cannot be asked, and the verdict says so."""
    args = {"repo": served.address("a"), "dest": str(harness.pai_dir / "code")}
    assert harness.run("git_clone", args).failure is None
    served.answer = lambda _: Answer(503)
    module: Any = harness.make("git_clone", args)
    verdict = module.plan(module.probe(harness.context()))
    assert verdict.kind == "no_change"
    assert "cannot check for newer commits: the git server has an internal error" in verdict.because


def test_a_commit_needs_no_server(harness: Harness, served: Served) -> None:
    """At the wanted commit nobody is asked; for a branch, the server is asked once."""
    sha = git(served.root / "a.git", "rev-parse", "main")
    dest = str(harness.pai_dir / "code")
    assert harness.run("git_clone", {"repo": served.address("a"), "dest": dest}).failure is None
    served.asked.clear()
    harness.changes_nothing(
        harness.make("git_clone", {"repo": served.address("a"), "dest": dest, "commit": sha[:7]})
    )
    assert served.asked == []
    module: Any = harness.make("git_clone", {"repo": served.address("a"), "dest": dest})
    assert module.plan(module.probe(harness.context())).kind == "no_change"
    assert [asked.target.rpartition("/")[2] for asked in served.asked] == [
        "refs?service=git-upload-pack", "git-upload-pack",
    ]  # fmt: skip


def test_a_shallow_clone_with_another_name_of_the_remote_is_updated(
    harness: Harness, origin: Path
) -> None:
    args = clone_of(harness, origin, depth=1, options=["--origin=up"])
    harness.run("git_clone", args)
    sha = commit(origin, "fourth", "4")
    outcome = harness.run("git_clone", args)
    assert outcome.failure is None
    assert git(harness.pai_dir / "code", "rev-parse", "HEAD") == sha
