"""The module git_clone, with real repositories and a real git."""

from __future__ import annotations

import os
import re
import subprocess
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pairun.module import Failure, Secret

if TYPE_CHECKING:
    from tests.modules.conftest import Harness
from tests.modules.git_clone.conftest import Served, clone_of, commit, git
from tests.webserver import Answer, Asked

VARIANTS: list[tuple[str, dict[str, Any], str]] = [
    ("the repository's own choice", {}, "main"),
    ("a branch", {"branch": "side"}, "side"),
    ("a tag", {"branch": "v1"}, "v1^{commit}"),
    ("a branch among the options", {"options": ["--quiet -b side"]}, "side"),
    ("a depth", {"depth": 1}, "main"),
    ("options of several words", {"options": ["--depth 1", "--no-single-branch"]}, "main"),
    ("an older commit", {"commit": "main~1"}, "main~1"),
    ("an older commit of a shallow clone", {"commit": "main~1", "depth": 1}, "main~1"),
    ("a short commit of a shallow clone", {"commit": "short", "depth": 1}, "main~1"),
    ("a commit of another branch", {"commit": "side", "options": ["--single-branch"]}, "side"),
    ("a partial clone", {"options": ["--filter=blob:none"]}, "main"),
    ("a commit of a partial clone", {"commit": "main~1", "options": ["--filter tree:0"]}, "main~1"),
    ("a clone since a date", {"options": ["--shallow-since='2001-01-01'"]}, "main"),
    ("another name of the remote", {"commit": "side", "options": ["-o up --depth 1"]}, "side"),
    ("more and less output", {"options": ["-v --progress", "-q", "--no-progress"]}, "main"),
    ("short options together", {"options": ["-qvbside"]}, "side"),
    ("settings", {"options": ["-c core.autocrlf=input", "--config=user.name='A B'"]}, "main"),
    ("submodules of their branch", {"options": ["--recursive --remote-submodules"]}, "main"),
]


@pytest.mark.parametrize(("what", "args", "wanted"), VARIANTS, ids=lambda v: v or "")
def test_the_clone_is_complete_and_stays(
    harness: Harness, origin: Path, what: str, args: dict[str, Any], wanted: str
) -> None:
    """The wanted commit is checked out, hidden files too, and a second run changes nothing."""
    sha = git(origin, "rev-parse", wanted)
    if "commit" in args:
        args = {**args, "commit": sha[:8] if args["commit"] == "short" else sha}
    args = clone_of(harness, origin, **args)
    module = harness.make("git_clone", args)
    assert harness.review(module) == "will_change"
    outcome = harness.run("git_clone", args)
    assert outcome.failure is None, what
    assert outcome.result is not None
    assert outcome.result.values == {"commit": sha}
    dest = harness.pai_dir / "code"
    assert git(dest, "rev-parse", "HEAD") == sha
    assert git(dest, "status", "--porcelain") == ""
    assert (dest / ".hidden").read_text() == "h"
    assert [p.name for p in harness.pai_dir.iterdir()] == ["code"]
    harness.changes_nothing(module)


@pytest.mark.parametrize("option", ["--mirror", "--bare", "--no-checkout", "-n"])
@pytest.mark.parametrize("wanted", [None, "main~1"])
def test_a_clone_without_files_is_complete_and_follows_the_server(
    harness: Harness, origin: Path, option: str, wanted: str | None
) -> None:
    more = {"commit": git(origin, "rev-parse", wanted)} if wanted else {}
    args = clone_of(harness, origin, options=[option], **more)
    outcome = harness.run("git_clone", args)
    assert outcome.failure is None
    dest = harness.pai_dir / "code"
    assert git(dest, "rev-parse", "HEAD") == git(origin, "rev-parse", wanted or "main")
    assert not (dest / "second").exists()
    bare = option in ("--mirror", "--bare")
    assert git(dest, "rev-parse", "--is-bare-repository") == str(bare).lower()
    harness.changes_nothing(harness.make("git_clone", args))
    new = commit(origin, "fourth", "4")
    if wanted is None:
        assert harness.run("git_clone", args).failure is None
        assert git(dest, "rev-parse", "HEAD") == new


PROGRAMS = [
    "--upload-pack={0}",
    "-u {0}",
    "-qu{0}",
    "--template={1}",
    "-c core.sshCommand={0}",
    "-ccore.sshCommand={0}",
    "--config=core.sshCommand={0}",
    "-c CORE.SSHCOMMAND={0}",
    "-c core.gitProxy={0}",
    "-c core.fsmonitor={0}",
    "-c core.hooksPath={1}",
    "-c core.pager={0}",
    "-c core.askPass={0}",
    "-c credential.helper='!{0}'",
    "-c credential.https://example.com.helper={0}",
    "-c remote.origin.uploadpack={0}",
    "-c protocol.ext.allow=always",
    "-c url.ext::{0}.insteadOf=file:",
    "-c uploadpack.packObjectsHook={0}",
    "-c filter.lfs.smudge={0}",
    "-c filter.x.process={0}",
    "-c lfs.customtransfer.x.path={0}",
    "-c include.path={0}",
    "-c includeIf.gitdir:/.path={0}",
    "-c submodule.x.update='!{0}'",
    "-c alias.checkout='!{0}'",
    "-c advice.x -c core.sshCommand={0}",
    "--config 'advice.x\n[core]\nsshCommand={0}'",
    "--separate-git-dir={1}",
    "--reference={1}",
    "--bundle-uri=ext::{0}",
    "--filter=sparse:oid={0}",
    "-o --upload-pack={0}",
    "-o ../../../../etc",
    "--uplo={0}",
    "--recurse-submodules --upload-pack {0}",
    "-- ext::{0}",
]
"""Options that start a program, read its settings, or lead elsewhere."""


@pytest.mark.parametrize("option", PROGRAMS)
def test_no_option_starts_a_program(harness: Harness, option: str) -> None:
    args = clone_of(harness, harness.tmp, options=[option.format("/x/program", "/x")])
    assert harness.problems("git_clone", args)


def test_the_allowed_settings_start_no_program(harness: Harness, origin: Path) -> None:
    """No key is of a kind that starts one, and git starts none with a program as each text."""
    args = clone_of(harness, origin, options=["-c x"])
    (refusal,) = harness.problems("git_clone", args)
    keys = refusal.message.rpartition("allowed: ")[2].split(", ")
    assert len(keys) > 40
    unsafe = "command|helper|program|(?<!quote)path$|hook|editor|pager|askpass|proxy|process|clean|smudge|pack$"
    unsafe += "|monitor|driver|url|instead|file$|include[.]|template|header|cookie|ssl|allow|alias"
    assert not [key for key in keys if re.search(unsafe, key)]
    mark, program = harness.tmp / "mark", harness.tmp / "program"
    program.write_text(f"#!/bin/sh\ntouch {mark}\n")
    program.chmod(0o755)
    texts = [
        f"-c {key}={program}"
        for key in keys
        if key.startswith(("user.", "lfs.fetch", "init.", "merge.c"))
    ]
    assert harness.run("git_clone", {**args, "options": [*texts, "-c advice.x=0"]}).failure is None
    assert not mark.exists()


def test_an_interrupted_clone_is_cleared_away(harness: Harness, origin: Path) -> None:
    """Leftovers beside the destination and an empty destination are no obstacle."""
    left = harness.pai_dir / ".code.pairun-clone"
    (left / "sub").mkdir(parents=True)
    (left / "sub" / "half").write_text("x")
    (harness.pai_dir / "code").mkdir()
    assert harness.run("git_clone", clone_of(harness, origin)).failure is None
    assert (harness.pai_dir / "code" / "second").exists()
    assert not left.exists()


def test_a_leftover_that_is_a_link_is_not_followed(harness: Harness, origin: Path) -> None:
    """A link in the place of the temporary clone is removed, what it points to is not."""
    precious = harness.tmp / "precious"
    precious.mkdir()
    (precious / "file").write_text("x")
    (harness.pai_dir / ".code.pairun-clone").symlink_to(precious)
    assert harness.run("git_clone", clone_of(harness, origin)).failure is None
    assert (precious / "file").exists()


def test_other_content_is_left_alone(harness: Harness, origin: Path) -> None:
    """A destination with anything else is an error of the user, and stays as it is."""
    dest = harness.pai_dir / "code"
    dest.mkdir()
    (dest / "mine").write_text("x")
    before = harness.snapshot()
    failure = harness.run("git_clone", clone_of(harness, origin)).failure
    assert failure is not None
    assert (failure.kind, failure.fault) == ("permanent", "user")
    assert "not empty" in failure.message
    assert harness.snapshot() == before


def test_a_clone_of_another_repository_is_left_alone(harness: Harness, origin: Path) -> None:
    """What was cloned from elsewhere is an error that says so, and stays."""
    args = clone_of(harness, origin)
    assert harness.run("git_clone", args).failure is None
    (harness.tmp / "alias").symlink_to(origin)
    args["repo"] = f"file://{harness.tmp}/alias"
    before = harness.snapshot()
    failure = harness.run("git_clone", args).failure
    assert failure is not None
    assert (failure.kind, failure.fault) == ("permanent", "user")
    assert "holds a clone of another repository" in failure.message
    assert harness.snapshot() == before


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ({"repo": "file:///nowhere/at/all"}, "does not appear to be a git repository"),
        ({"repo": "/nowhere/at/all"}, "does not exist"),
        ({"branch": "no-such-branch"}, "no-such-branch not found"),
        ({"commit": "0123456789abcdef0123456789abcdef01234567"}, "no commit 0123456789"),
    ],
)
def test_what_does_not_exist_is_permanent(
    harness: Harness, origin: Path, args: dict[str, str], says: str
) -> None:
    """A repository, branch or commit that is not there will not heal, and nothing is left."""
    failure = harness.run("git_clone", {**clone_of(harness, origin), **args}).failure
    assert failure is not None
    assert (failure.kind, failure.fault) == ("permanent", "user")
    assert says in failure.message
    assert failure.hint
    assert list(harness.pai_dir.iterdir()) == []


BAD: list[tuple[dict[str, Any], str]] = [
    ({"repo": "--upload-pack=touch /x"}, "not an option"),
    ({"repo": "ext::sh -c touch% /x"}, "transport helper"),
    ({"repo": "fd::17"}, "transport helper"),
    ({"repo": "https://a/b\nc"}, "one line"),
    ({"repo": "ftp://a/b"}, "not ftp"),
    ({"repo": "ssh://git:password@a/b"}, "for ssh there are keys"),
    ({"stall": "10ms"}, "'stall' must be at least 1s"),
    ({"repo": Secret("https://host/token")}, "before the @"),
    ({"dest": "code"}, "'dest' must be an absolute path"),
    ({"dest": "/tmp/.."}, "'dest' must be an absolute path"),
    ({"commit": "main"}, "hexadecimal"),
    ({"branch": "--force"}, "name of a branch"),
    ({"depth": 0}, "at least 1"),
    ({"depth": 1, "options": ["--depth 2"]}, "'depth' is given more than once"),
    ({"branch": "a", "options": ["-bmain"]}, "'branch' is given more than once"),
    ({"options": ["--upload-pack=/x"]}, "'--upload-pack=/x' of git clone is not allowed"),
    ({"options": ["-c core.sshCommand=/x"]}, "setting 'core.sshcommand' of git is not allowed"),
    ({"options": ["-c"]}, "needs a value"),
    ({"options": ["--filter=all"]}, "--filter of git clone cannot be 'all'"),
    ({"options": ["-qu/x"]}, "is not allowed"),
    ({"options": ["--template=/x"]}, "is not allowed"),
    ({"options": ["somewhere"]}, "is not allowed"),
    ({"options": ["--"]}, "is not allowed"),
    ({"options": ["--quiet=yes"]}, "is not allowed"),
    ({"options": ["--branch"]}, "needs a value"),
    ({"options": ["--branch --quiet"]}, "needs a value"),
    ({"options": ["--depth all"]}, "needs a number"),
    ({"options": ["--depth 99999999999999999999"]}, "needs a number from 1 to 2147483647"),
    ({"options": ["--depth=0"]}, "needs a number from 1 to 2147483647"),
    ({"options": ["-j2147483648"]}, "needs a number from 0 to 2147483647"),
    ({"depth": 99999999999999999999}, "'depth' must be at least 1 and at most 2147483647"),
    ({"options": ["'half"]}, "cannot be read"),
]


@pytest.mark.parametrize(("args", "says"), BAD, ids=lambda v: str(v)[:40])
def test_what_cannot_work_is_refused(harness: Harness, args: dict[str, Any], says: str) -> None:
    """What could start a program, or makes no sense, is an argument problem in words."""
    full = {"repo": "https://example.com/a.git", "dest": "/x", **args}
    assert [p for p in harness.problems("git_clone", full) if says in p.message]


def test_messages_come_while_git_runs(harness: Harness, served: Served) -> None:
    """What git says appears before it ends: the server waits for the line."""
    said = threading.Event()
    log: list[str] = []

    def emit(line: str) -> None:
        log.append(line)
        said.set()

    def answer(asked: Asked) -> Answer | None:
        assert said.wait(30)
        return None

    served.answer = answer
    module: Any = harness.make(
        "git_clone", {"repo": served.address("a"), "dest": str(harness.pai_dir / "code")}
    )
    context = harness.context()
    context._emit_log = emit
    module.apply(context)
    assert log[0].startswith("Cloning into")
    assert any("100%" in line for line in log)
    assert not any("\r" in line for line in log)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
def test_a_clone_at_a_mount_point_says_so(harness: Harness, origin: Path) -> None:
    """A destination that is a mount cannot be replaced, and the failure names the reason."""
    dest = harness.pai_dir / "code"
    dest.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "none", str(dest)], check=True)
    try:
        failure = harness.run("git_clone", clone_of(harness, origin)).failure
    finally:
        subprocess.run(["umount", str(dest)], check=True)
    assert failure is not None
    assert "busy" in failure.message


def test_without_git_it_fails_in_words(harness: Harness, origin: Path) -> None:
    """A missing git is named."""
    failure = harness.run("git_clone", clone_of(harness, origin), {"PATH": "/nowhere"}).failure
    assert isinstance(failure, Failure)
    assert "the program git does not exist here" in failure.message
