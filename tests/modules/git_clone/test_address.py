"""Credentials in an address."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from pairun.module import Secret

if TYPE_CHECKING:
    from tests.modules.conftest import Harness
from tests.modules.git_clone.conftest import (
    LOCKED,
    POINTER,
    Served,
    commit,
    git,
    repository,
    submodule,
)
from tests.webserver import Answer, Asked


@pytest.fixture
def elsewhere(harness: Harness) -> Iterator[Served]:
    """A second server, with the same repositories under another name."""
    running = Served(harness.tmp / "repositories")
    yield running
    running.close()


def _locked(asked: Asked) -> Answer | None:
    """A server that wants user:hunter2!"""
    return None if asked.authorization == "Basic dXNlcjpodW50ZXIyIQ==" else LOCKED


def test_credentials_are_used_and_not_kept(harness: Harness, served: Served) -> None:
    """A private repository is cloned; no file of the clone, line or message holds the password."""
    served.answer = _locked
    repo = Secret(served.address("a", "user:hunter2%21@"))
    args = {"repo": repo, "dest": str(harness.pai_dir / "code")}
    outcome = harness.run("git_clone", args)
    assert outcome.failure is None
    shown = [*harness.log, str(outcome), str(harness.make("git_clone", args))]
    assert "hunter2" not in "".join(shown)
    files = [p.read_bytes() for p in harness.pai_dir.rglob("*") if p.is_file()]
    assert files
    assert not any(b"hunter2" in data or b"dXNlcjpodW50ZXIyIQ" in data for data in files)
    harness.changes_nothing(harness.make("git_clone", args))


@pytest.mark.parametrize("way", ["redirection", "redirection before", "submodule", "lfs"])
def test_credentials_go_to_their_server_only(
    harness: Harness, served: Served, elsewhere: Served, way: str
) -> None:
    """A redirection, a submodule or an LFS store on another host never sees them."""
    name = "a"
    other = f"http://localhost:{elsewhere.port}"
    elsewhere.answer = lambda _: LOCKED
    served.answer = _locked
    if way == "submodule":
        name = "outer"
        outer = repository(served.root / "outer.git")
        submodule(outer, "sub", f"{other}/a.git", git(served.root / "a.git", "rev-parse", "HEAD"))
    elif way == "lfs":
        if shutil.which("git-lfs") is None:
            pytest.skip("needs the program git-lfs (Debian package git-lfs)")
        name = "large"
        large = repository(served.root / "large.git", (".gitattributes", "*.bin filter=lfs\n"))
        commit(large, ".lfsconfig", f"[lfs]\n\turl = {other}/store\n")
        commit(large, "weights.bin", POINTER)
    else:
        served.answer = lambda asked: (
            (_locked(asked) if way == "redirection" else None)
            or Answer(302, {"Location": other + asked.target})
        )
    args = {"repo": served.address(name, "user:hunter2%21@"), "dest": str(harness.pai_dir / "code")}
    failure = harness.run("git_clone", {**args, "options": ["--recursive"]}).failure
    assert failure is not None
    assert "hunter2" not in failure.message + "".join(harness.log)
    assert elsewhere.asked, failure.message
    assert {asked.authorization for asked in elsewhere.asked} == {None}


def test_credentials_stand_in_no_argument(harness: Harness) -> None:
    """No argument list of a program holds the password."""
    seen = harness.tmp / "argv"
    (harness.tmp / "bin").mkdir()
    fake = harness.tmp / "bin" / "git"
    fake.write_text(f'#!/bin/sh\necho "$@" >> {seen}\nexit 1\n')
    fake.chmod(0o755)
    args = {"repo": Secret("https://user:hunter2@h.invalid/a"), "dest": str(harness.pai_dir / "c")}
    harness.run("git_clone", args, {"PATH": f"{fake.parent}:{os.environ['PATH']}"})
    assert "hunter2" not in seen.read_text()
    assert "https://h.invalid/a" in seen.read_text()
