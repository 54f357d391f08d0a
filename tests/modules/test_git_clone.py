"""The module git_clone, with real repositories, a real git and servers that misbehave."""

from __future__ import annotations

import contextlib
import email.utils
import hashlib
import http.server
import json
import os
import pathlib
import re
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from pairun.module import Failure, Secret

if TYPE_CHECKING:
    from pairun.testing import Outcome
    from tests.modules.conftest import Harness

ROOT = pathlib.Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "git.md"

IDENTITY = {
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example.com",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.com",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
}


def git(where: Path, *words: str) -> str:
    """Run git for the test itself."""
    done = subprocess.run(
        ["git", *words], cwd=where, env={**os.environ, **IDENTITY}, check=True, capture_output=True
    )
    return done.stdout.decode().strip()


def commit(where: Path, name: str, text: str) -> str:
    """Add a file in a commit of its own."""
    (where / name).write_text(text)
    git(where, "add", name)
    git(where, "commit", "-q", "-m", name)
    return git(where, "rev-parse", "HEAD")


@pytest.fixture
def origin(harness: Harness) -> Path:
    """A repository with two commits on main, a branch, a tag and a hidden file."""
    path = harness.tmp / "origin"
    path.mkdir()
    git(path, "init", "-q", "-b", "main")
    git(path, "config", "uploadpack.allowAnySHA1InWant", "true")
    commit(path, ".hidden", "h")
    git(path, "tag", "-a", "v1", "-m", "v1")
    commit(path, "second", "2")
    git(path, "checkout", "-q", "-b", "side")
    commit(path, "third", "3")
    git(path, "checkout", "-q", "main")
    return path


def clone_of(harness: Harness, origin: Path, **args: Any) -> dict[str, Any]:
    """The arguments of a clone."""
    return {"repo": f"file://{origin}", "dest": str(harness.pai_dir / "code"), **args}


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


# --- a clone that is there ------------------------------------------------------------------------


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
    """A clone in which somebody has worked is not replaced: an error says what is there."""
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
    args = {"repo": served.url("a"), "dest": str(harness.pai_dir / "code")}
    assert harness.run("git_clone", args).failure is None
    served.answer = lambda request: request.reply(503)
    module: Any = harness.make("git_clone", args)
    verdict = module.plan(module.probe(harness.context()))
    assert verdict.kind == "no_change"
    assert "whether it has moved on is not known: the git server has an error" in verdict.because


def test_a_commit_needs_no_server(harness: Harness, served: Served) -> None:
    """At the wanted commit nobody is asked; for a branch, the server is asked once."""
    sha = git(served.root / "a.git", "rev-parse", "main")
    dest = str(harness.pai_dir / "code")
    assert harness.run("git_clone", {"repo": served.url("a"), "dest": dest}).failure is None
    served.seen.clear()
    harness.changes_nothing(
        harness.make("git_clone", {"repo": served.url("a"), "dest": dest, "commit": sha[:7]})
    )
    assert served.seen == []
    module: Any = harness.make("git_clone", {"repo": served.url("a"), "dest": dest})
    assert module.plan(module.probe(harness.context())).kind == "no_change"
    assert [path.rpartition("/")[2] for path in served.paths()] == [
        "refs?service=git-upload-pack", "git-upload-pack",
    ]  # fmt: skip


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
    ({"options": ["--quiet --config core.fsmonitor=/x"]}, "'--config' of git clone is not allowed"),
    ({"options": ["-c core.sshCommand=/x"]}, "is not allowed"),
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


# --- hostile repositories -------------------------------------------------------------------------


def repository(path: Path, *files: tuple[str, str]) -> Path:
    """A repository whose branch main holds files; one with a README where none are given."""
    path.mkdir(parents=True)
    git(path, "init", "-q", "-b", "main")
    git(path, "config", "uploadpack.allowAnySHA1InWant", "true")
    for name, text in files or (("README", "r"),):
        commit(path, name, text)
    return path


def submodule(outer: Path, path: str, url: str, sha: str, more: str = "", name: str = "") -> None:
    """Add a submodule by hand, with whatever git itself would refuse to add."""
    config = f'[submodule "{name or path}"]\n\tpath = {path}\n\turl = {url}\n{more}'
    (outer / ".gitmodules").write_text(config)
    git(outer, "add", ".gitmodules")
    git(outer, "update-index", "--add", "--cacheinfo", f"160000,{sha},{path}")
    git(outer, "commit", "-q", "-m", "submodule")


SUBMODULES: list[tuple[str, dict[str, str]]] = [
    ("a transport that runs a command", {"url": "ext::sh -c touch% {marker}"}),
    ("the same, through url and name", {"url": "ext::{script}", "name": "ext::{script}"}),
    ("descriptors", {"url": "fd::17"}),
    ("an option as address", {"url": "--upload-pack={script}"}),
    ("an option as short address", {"url": "-u{script}"}),
    ("an option as name", {"url": "{inner}", "name": "-u{script}"}),
    ("an option as path, ignored", {"url": "{inner}", "path": "-u{script}"}),
    ("a name that leads outside, ignored", {"url": "{inner}", "name": "../../hooks"}),
    ("a program that updates", {"url": "{inner}", "more": "\tupdate = !touch {marker}\n"}),
    ("an ssh option as host", {"url": "ssh://-oProxyCommand=touch%20{marker}/x"}),
    ("an ssh option, short", {"url": "-oProxyCommand=touch {marker}:x"}),
    ("a file of this machine", {"url": "file://{inner}"}),
    ("a path of this machine", {"url": "{inner}"}),
    ("a newline in the path, ignored", {"url": "{inner}", "path": "sub\r"}),
]


@pytest.mark.parametrize(
    ("what", "attack"), SUBMODULES, ids=lambda v: v if isinstance(v, str) else ""
)
def test_a_submodule_starts_nothing(
    harness: Harness, origin: Path, served: Served, what: str, attack: dict[str, str]
) -> None:
    """A repository whose submodule would start a program or read files here is refused."""
    marker = harness.tmp / "marker"
    script = harness.tmp / "script"
    script.write_text(f"#!/bin/sh\ntouch {marker}\n")
    script.chmod(0o755)
    words = {"marker": str(marker), "script": str(script), "inner": str(origin)}
    filled = {key: value.format(**words) for key, value in attack.items()}
    outer = repository(served.root / "hostile.git")
    sha = git(origin, "rev-parse", "main")
    submodule(outer, filled.pop("path", "sub"), filled.pop("url"), sha, **filled)
    args = {"repo": served.url("hostile"), "dest": str(harness.pai_dir / "code")}
    failure = harness.run("git_clone", {**args, "options": ["--recursive"]}).failure
    if "ignored" not in what:
        assert failure is not None, what
        assert (failure.kind, failure.fault) == ("permanent", "user"), failure.message
        assert list(harness.pai_dir.iterdir()) == []
    assert not marker.exists()
    assert not list(harness.pai_dir.rglob("second"))


def test_a_submodule_behind_a_link_starts_nothing(
    harness: Harness, origin: Path, served: Served
) -> None:
    """A submodule whose path leads through a link of the repository into .git runs no hook."""
    marker = harness.tmp / "marker"
    hooked = repository(served.root / "hooked.git")
    (hooked / "y" / "hooks").mkdir(parents=True)
    hook = hooked / "y" / "hooks" / "post-checkout"
    hook.write_text(f"#!/bin/sh\ntouch {marker}\n")
    hook.chmod(0o755)
    git(hooked, "add", "y")
    git(hooked, "commit", "-q", "-m", "hook")
    outer = repository(served.root / "linked.git")
    blob = subprocess.run(
        ["git", "hash-object", "-w", "--stdin"], cwd=outer, input=b".git", check=True,
        capture_output=True,
    ).stdout.decode().strip()  # fmt: skip
    git(outer, "update-index", "--add", "--cacheinfo", f"120000,{blob},a")
    url = served.url("hooked")
    submodule(outer, "A/modules/x", url, git(hooked, "rev-parse", "HEAD"), name="x/y")
    args = {"repo": served.url("linked"), "dest": str(harness.pai_dir / "code")}
    harness.run("git_clone", {**args, "options": ["--recursive"]})
    assert not marker.exists()


@pytest.mark.parametrize("path", [".git/hooks/post-checkout", ".GIT/config", "../outside"])
def test_a_path_leads_nowhere_else(harness: Harness, served: Served, path: str) -> None:
    """A tree whose paths lead into .git or out of the clone is refused or harmless."""
    marker = harness.tmp / "marker"
    evil = repository(served.root / "paths.git")
    text = f"#!/bin/sh\ntouch {marker}\n".encode()
    sha = _stored(evil, "blob", text)
    for part in reversed(path.split("/")):
        kind = b"100755" if part == os.path.basename(path) else b"40000"
        sha = _stored(evil, "tree", kind + b" " + part.encode() + b"\0" + bytes.fromhex(sha))
    made = git(evil, "commit-tree", "-m", "evil", sha)
    git(evil, "update-ref", "refs/heads/main", made)
    args = {"repo": served.url("paths"), "dest": str(harness.pai_dir / "code")}
    failure = harness.run("git_clone", args).failure
    if path != ".GIT/config":
        assert failure is not None
        assert failure.kind == "permanent", failure.message
    assert not (harness.pai_dir / "outside").exists()
    assert not marker.exists()


def _stored(repo: Path, kind: str, data: bytes) -> str:
    """Store an object that git itself would not make."""
    done = subprocess.run(
        ["git", "hash-object", "-w", "--literally", "-t", kind, "--stdin"],
        cwd=repo, input=data, check=True, capture_output=True,
    )  # fmt: skip
    return done.stdout.decode().strip()


VARIABLES: list[dict[str, str]] = [
    {"GIT_SSH_COMMAND": "{script}"},
    {"GIT_SSH": "{script}"},
    {"GIT_ASKPASS": "{script}"},
    {"SSH_ASKPASS": "{script}"},
    {"GIT_PROXY_COMMAND": "{script}"},
    {"GIT_EXEC_PATH": "{tmp}/programs"},
    {"GIT_TEMPLATE_DIR": "{tmp}/template"},
    {"GIT_CONFIG_GLOBAL": "{tmp}/hostile"},
    {"GIT_CONFIG_SYSTEM": "{tmp}/hostile"},
    {"GIT_CONFIG_PARAMETERS": "'core.fsmonitor'='{script}'"},
    {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.fsmonitor",
        "GIT_CONFIG_VALUE_0": "{script}",
    },
    {"GIT_DIR": "{tmp}/elsewhere", "GIT_WORK_TREE": "{tmp}"},
    {"GIT_EXTERNAL_DIFF": "{script}"},
    {"GIT_PAGER": "{script}", "PAGER": "{script}"},
    {"GIT_ALLOW_PROTOCOL": "ext:fd:file"},
    {"GIT_TRACE2": "{tmp}/marker", "GIT_TRACE": "{tmp}/marker"},
    {"HOME": "{tmp}/home"},
    {"XDG_CONFIG_HOME": "{tmp}/home/.config"},
]


@pytest.mark.parametrize("env", VARIABLES, ids=lambda v: next(iter(v)))
def test_a_variable_starts_nothing(
    harness: Harness, served: Served, closed_port: int, env: dict[str, str]
) -> None:
    """No variable of git's and no configuration in a home directory makes a clone run a program."""
    script = harness.tmp / "script"
    script.write_text(f"#!/bin/sh\ntouch {harness.tmp}/marker\n")
    script.chmod(0o755)
    for place in ("programs/git-remote-http", "programs/git-upload-pack"):
        (harness.tmp / place).parent.mkdir(exist_ok=True)
        shutil.copy(script, harness.tmp / place)
    hooks = harness.tmp / "template" / "hooks"
    hooks.mkdir(parents=True)
    shutil.copy(script, hooks / "post-checkout")
    hostile = (
        f"[core]\n\tfsmonitor = {script}\n\tsshCommand = {script}\n\tgitProxy = {script}\n"
        f'\taskPass = {script}\n\thooksPath = {hooks}\n[filter "x"]\n\tsmudge = {script}\n'
        f"[init]\n\ttemplateDir = {hooks.parent}\n[credential]\n\thelper = {script}\n"
        f'[url "ext::{script} "]\n\tinsteadOf = http://127.0.0.1\n'
        '[protocol "ext"]\n\tallow = always\n'
    )
    (harness.tmp / "hostile").write_text(hostile)
    (harness.tmp / "home" / ".config" / "git").mkdir(parents=True)
    (harness.tmp / "home" / ".gitconfig").write_text(hostile)
    (harness.tmp / "home" / ".config" / "git" / "config").write_text(hostile)
    full = {name: value.replace("{script}", str(script)) for name, value in env.items()}
    filtered = repository(served.root / "filtered.git", (".gitattributes", "* filter=x\n"))
    commit(filtered, "file", "x")
    dest = str(harness.pai_dir / "code")
    assert (
        harness.run("git_clone", {"repo": served.url("filtered"), "dest": dest}, full).failure
        is None
    )
    served.answer = lambda request: request.reply(401)
    for number, repo in enumerate(
        (served.url("filtered"), "ssh://127.0.0.1:1/x", f"git://127.0.0.1:{closed_port}/x")
    ):
        args = {"repo": repo, "dest": f"{dest}{number}"}
        assert harness.run("git_clone", args, full).failure is not None
    assert not (harness.tmp / "marker").exists()


def test_a_hook_of_a_template_never_comes_along(harness: Harness, origin: Path) -> None:
    """A clone has no hooks, so that none runs later either."""
    assert harness.run("git_clone", clone_of(harness, origin)).failure is None
    hooks = harness.pai_dir / "code" / ".git" / "hooks"
    assert not hooks.exists() or not list(hooks.iterdir())


# --- Git LFS --------------------------------------------------------------------------------------

CONTENT = b"large\0content" * 100
OID = hashlib.sha256(CONTENT).hexdigest()
POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{OID}\nsize {len(CONTENT)}\n"


@pytest.fixture
def large(served: Served) -> Served:
    """A server with a repository that keeps a file in LFS, and the LFS store."""
    repository(
        served.root / "large.git",
        (".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n"),
        ("weights.bin", POINTER),
    )

    def answer(request: Request) -> bool:
        if request.path.endswith("/objects/batch"):
            href = f"http://127.0.0.1:{served.port}/store/{OID}"
            entry = {"oid": OID, "size": len(CONTENT), "actions": {"download": {"href": href}}}
            body = json.dumps({"transfer": "basic", "objects": [entry]}).encode()
            return request.reply(200, body, {"Content-Type": "application/vnd.git-lfs+json"})
        if request.path == f"/store/{OID}":
            return request.reply(200, CONTENT)
        return False

    served.answer = answer
    return served


@pytest.fixture
def git_lfs() -> None:
    """The program git-lfs."""
    if shutil.which("git-lfs") is None:
        pytest.skip("needs the program git-lfs (Debian package git-lfs)")


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


@pytest.mark.usefixtures("git_lfs")
@pytest.mark.parametrize("fixed", [False, True])
def test_files_of_lfs_are_fetched(harness: Harness, large: Served, fixed: bool) -> None:
    """A file in LFS stands in the clone with its content, and a second run changes nothing."""
    args: dict[str, Any] = {"repo": large.url("large"), "dest": str(harness.pai_dir / "code")}
    if fixed:
        args["commit"] = git(large.root / "large.git", "rev-parse", "HEAD")
    assert harness.run("git_clone", args).failure is None
    assert (harness.pai_dir / "code" / "weights.bin").read_bytes() == CONTENT
    harness.changes_nothing(harness.make("git_clone", args))


def test_lfs_without_git_lfs_is_said(
    harness: Harness, large: Served, without_lfs: dict[str, str]
) -> None:
    """Without git-lfs the task fails in words, unless the pointers are wanted."""
    args: dict[str, Any] = {"repo": large.url("large"), "dest": str(harness.pai_dir / "code")}
    failure = harness.run("git_clone", args, without_lfs).failure
    assert failure is not None
    assert (failure.kind, failure.fault) == ("permanent", "platform")
    assert "git-lfs is not here" in failure.message
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
    args = {"repo": large.url("large"), "dest": str(harness.pai_dir / "code")}
    harness.run("git_clone", args, {"GIT_LFS_SKIP_SMUDGE": "0"})
    assert not (harness.tmp / "marker").exists()


# --- servers --------------------------------------------------------------------------------------


class Request(http.server.BaseHTTPRequestHandler):
    """A request to a git server: git's own http-backend answers, unless a test does."""

    protocol_version = "HTTP/1.1"
    served: Served

    def do_GET(self) -> None:
        """Answer."""
        self.body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.served.seen.append((self.path, self.headers.get("Authorization", "")))
        if not self.served.answer(self):
            self.reply(200, *self.backend())

    do_POST = do_GET  # noqa: N815

    def backend(self) -> tuple[bytes, dict[str, str]]:
        """What git's http-backend answers (git-http-backend(1))."""
        path, _, query = self.path.partition("?")
        env = {
            **os.environ,
            **IDENTITY,
            "GIT_PROJECT_ROOT": str(self.served.root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "REQUEST_METHOD": self.command,
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
        }
        done = subprocess.run(
            ["git", "http-backend"], env=env, input=self.body, capture_output=True, check=False
        )
        head, _, body = done.stdout.partition(b"\r\n\r\n")
        return body, dict(line.split(": ", 1) for line in head.decode().split("\r\n"))

    def reply(self, status: int, body: bytes = b"", headers: dict[str, str] | None = None) -> bool:
        """Answer with this."""
        headers = dict(headers or {})
        self.send_response(int(headers.pop("Status", str(status)).split()[0]))
        if status == 401:
            headers["WWW-Authenticate"] = 'Basic realm="x"'
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        with contextlib.suppress(OSError):
            self.wfile.write(body)
        return True

    def log_message(self, format: str, *args: Any) -> None:
        """Keep the test's output clean."""


class Served:
    """A git server over http, below one directory.

    Attributes:
        root: its repositories, ``NAME.git``.
        answer: answers a request, or returns False.
        seen: path and Authorization of every request.
    """

    def __init__(self, root: Path, tls: ssl.SSLContext | None = None) -> None:
        self.root = root
        self.answer: Callable[[Request], bool] = lambda request: False
        self.seen: list[tuple[str, str]] = []
        handler = type("Handler", (Request,), {"served": self})
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.server.daemon_threads = True
        self.port: int = self.server.server_address[1]
        if tls is not None:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def url(self, name: str, user: str = "", host: str = "127.0.0.1") -> str:
        """The address of a repository."""
        return f"http://{user}{host}:{self.port}/{name}.git"

    def paths(self) -> list[str]:
        """What was asked for."""
        return [path for path, _ in self.seen]

    def close(self) -> None:
        """End."""
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def served(harness: Harness) -> Iterator[Served]:
    """A running git server with a repository ``a``."""
    repository(harness.tmp / "repositories" / "a.git")
    running = Served(harness.tmp / "repositories")
    yield running
    running.close()


@pytest.fixture
def elsewhere(harness: Harness) -> Iterator[Served]:
    """A second server, with the same repositories under another name."""
    running = Served(harness.tmp / "repositories")
    yield running
    running.close()


@pytest.fixture
def closed_port() -> int:
    """A port on which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def _cut(request: Request) -> bool:
    """Send half of a pack, and break the connection."""
    if not request.path.endswith("git-upload-pack") or b"command=fetch" not in request.body:
        return False
    body, headers = request.backend()
    request.close_connection = True
    request.send_response(200)
    for name, value in {**headers, "Content-Length": str(len(body))}.items():
        request.send_header(name, value)
    request.end_headers()
    request.wfile.write(body[: len(body) // 2])
    return True


class Stage:
    """What the table of servers' behaviour is played on."""

    def __init__(self, harness: Harness, served: Served, closed_port: int) -> None:
        self.harness = harness
        self.served = served
        self.closed_port = closed_port
        self.hung = threading.Event()

    def clone(self, repo: str, env: dict[str, str] | None = None, **more: Any) -> Outcome:
        """Clone."""
        args = {"repo": repo, "dest": str(self.harness.pai_dir / "code"), **more}
        return self.harness.run("git_clone", args, env)

    def answers(self, status: int, user: str = "", body: bytes = b"", **headers: str) -> Outcome:
        """Clone from a server that has one answer."""
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        self.served.answer = lambda request: request.reply(
            401 if user and not request.headers.get("Authorization") else status, body, fields
        )
        return self.clone(self.served.url("a", user))

    def hangs(self) -> Outcome:
        """Clone from a server that never answers."""
        self.served.answer = lambda request: self.hung.wait(60)
        try:
            return self.clone(self.served.url("a"), stall="1s")
        finally:
            self.hung.set()

    def cuts(self) -> Outcome:
        """Clone from a server that breaks off."""
        self.served.answer = _cut
        return self.clone(self.served.url("a"))

    def untrusted(self) -> Outcome:
        """Clone from a server with a certificate of its own making."""
        key = str(self.harness.tmp / "key.pem")
        words = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=x", "-keyout"]
        subprocess.run(
            ["openssl", *words, key, "-out", key + ".crt"], check=True, capture_output=True
        )
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(key + ".crt", key)
        server = Served(self.served.root, tls)
        try:
            return self.clone(f"https://127.0.0.1:{server.port}/a.git")
        finally:
            server.close()

    def full(self) -> Outcome:
        """Clone into a file system with no room."""
        mounted = self.harness.pai_dir / "small"
        mounted.mkdir()
        big = repository(self.served.root / "big.git")
        (big / "data").write_bytes(os.urandom(400_000))
        git(big, "add", "data")
        git(big, "commit", "-q", "-m", "data")
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=200k", "none", str(mounted)], check=True
        )
        try:
            return self.clone(self.served.url("big"), dest=str(mounted / "code"))
        finally:
            subprocess.run(["umount", str(mounted)], check=True)

    def empty(self) -> Outcome:
        """Clone a repository without a commit."""
        git(self.served.root, "init", "-q", "--bare", "-b", "main", "empty.git")
        return self.clone(self.served.url("empty"))

    def unsafe(self) -> Outcome:
        """Clone a repository with a submodule that would run a command."""
        outer = repository(self.served.root / "outer.git")
        submodule(outer, "sub", "ext::sh -c false", git(outer, "rev-parse", "HEAD"))
        return self.clone(self.served.url("outer"), options=["--recursive"])

    def ssh(self, said: str) -> Outcome:
        """Clone from an ssh server that says something and ends."""
        programs = self.harness.tmp / "bin"
        programs.mkdir()
        (programs / "ssh").write_text(f"#!/bin/sh\necho '{said}' >&2\nexit 255\n")
        (programs / "ssh").chmod(0o755)
        return self.clone("git@git.invalid:a", {"PATH": f"{programs}:{os.environ['PATH']}"})

    def changed(self) -> Outcome:
        """Clone over a clone in which somebody has worked."""
        assert self.clone(self.served.url("a")).failure is None
        (self.harness.pai_dir / "code" / "mine").write_text("x")
        commit(self.served.root / "a.git", "more", "x")
        return self.clone(self.served.url("a"))


# The first column of the table in docs/git.md, and what plays it.
ROWS: dict[str, Callable[[Stage], Outcome]] = {
    "429 with `Retry-After: 7`": lambda s: s.answers(429, Retry_After="7"),
    "429 without `Retry-After`": lambda s: s.answers(429),
    "500, 502, 503, 504": lambda s: s.answers(503),
    "503 with `Retry-After: 7`": lambda s: s.answers(503, Retry_After="7"),
    "401, and the address has no credentials": lambda s: s.answers(401),
    "401 with credentials": lambda s: s.answers(401, user="user:token@"),
    "403": lambda s: s.answers(403),
    "404": lambda s: s.answers(404),
    "a page in the place of a repository": lambda s: s.answers(
        200, body=b"<html>\n<p>log in</p>\n</html>\n", Content_Type="text/html"
    ),
    "the name does not resolve": lambda s: s.clone("http://no-such-host.invalid/a.git"),
    "the connection is refused": lambda s: s.clone(f"http://127.0.0.1:{s.closed_port}/a.git"),
    "the server hangs": lambda s: s.hangs(),
    "the connection breaks in the middle": lambda s: s.cuts(),
    "the certificate is not trusted": lambda s: s.untrusted(),
    "ssh: the host key is not known": lambda s: s.ssh("Host key verification failed."),
    "ssh: the key is refused": lambda s: s.ssh("git@x: Permission denied (publickey)."),
    "the branch does not exist": lambda s: s.clone(s.served.url("a"), branch="nope"),
    "the commit does not exist": lambda s: s.clone(s.served.url("a"), commit="01234567" * 5),
    "the repository is empty": lambda s: s.empty(),
    "a submodule has an address that is not allowed": lambda s: s.unsafe(),
    "the disk is full": lambda s: s.full(),
    "`dest` holds a clone in which somebody has worked": lambda s: s.changed(),
}


def table() -> dict[str, tuple[str, str]]:
    """The table in the document: behaviour to kind and sentence."""
    rows = re.findall(r"^\| (.+?) \| (\w+) \| (.+?) \|$", DOCUMENT.read_text(), re.MULTILINE)
    return {what: (kind, says) for what, kind, says in rows if kind != "kind"}


@pytest.fixture
def stage(harness: Harness, served: Served, closed_port: int) -> Stage:
    """What a row of the table is played on."""
    return Stage(harness, served, closed_port)


@pytest.mark.parametrize("what", ROWS)
def test_the_document_says_what_happens(stage: Stage, what: str) -> None:
    """Every row of the table in docs/git.md is played, and reads as printed there."""
    kind, says = table()[what]
    failure = ROWS[what](stage).failure
    assert failure is not None
    assert failure.kind == kind, failure.message
    assert says.replace("`", "") in failure.message
    assert failure.hint or failure.kind == "transient"
    assert not (stage.harness.pai_dir / ".code.pairun-clone").exists()


def test_the_document_has_every_row() -> None:
    """No row of the table is without a test, and no test without a row."""
    assert table().keys() == ROWS.keys()


@pytest.mark.parametrize(
    ("header", "least", "most"),
    [
        ({"Retry-After": "7"}, 7, 7),
        ({"retry-after": " 120 "}, 120, 120),
        ({"Retry-After": "date"}, 80, 91),
        ({"Retry-After": "soon"}, 20, 20),
        ({"Retry-After": "-3"}, 20, 20),
        ({}, 20, 20),
    ],
)
def test_a_server_that_asks_to_wait(
    harness: Harness, served: Served, header: dict[str, str], least: float, most: float
) -> None:
    """Its Retry-After reaches the executor; a request more is not made to learn of it."""
    if header.get("Retry-After") == "date":
        header = {"Retry-After": email.utils.formatdate(time.time() + 90, usegmt=True)}
    served.answer = lambda request: request.reply(429, b"", header)
    args = {"repo": served.url("a"), "dest": str(harness.pai_dir / "code")}
    failure = harness.run("git_clone", args).failure
    assert failure is not None
    assert failure.retry_after_s is not None
    assert least <= failure.retry_after_s <= most
    assert len(served.seen) == 1


def test_a_wait_of_an_earlier_answer_does_not_count(harness: Harness, served: Served) -> None:
    """A Retry-After counts only where it stands in the last answer, and that is a refusal."""
    served.answer = lambda request: (
        request.reply(503)
        if request.headers.get("Authorization")
        else request.reply(401, b"", {"Retry-After": "99"})
    )
    args = {"repo": served.url("a", "u:p@"), "dest": str(harness.pai_dir / "code")}
    failure = harness.run("git_clone", args).failure
    assert failure is not None
    assert (failure.kind, failure.retry_after_s) == ("transient", None)


# --- credentials ----------------------------------------------------------------------------------


def _locked(request: Request) -> bool:
    """A server that wants user:hunter2!"""
    if request.headers.get("Authorization") == "Basic dXNlcjpodW50ZXIyIQ==":
        return False
    return request.reply(401)


def test_credentials_are_used_and_not_kept(harness: Harness, served: Served) -> None:
    """A private repository is cloned; no file of the clone, line or message holds the password."""
    served.answer = _locked
    repo = Secret(served.url("a", "user:hunter2%21@"))
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
    elsewhere.answer = lambda request: request.reply(401)
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
        served.answer = lambda request: (
            (way == "redirection" and _locked(request))
            or request.reply(302, b"", {"Location": other + request.path})
        )
    args = {"repo": served.url(name, "user:hunter2%21@"), "dest": str(harness.pai_dir / "code")}
    failure = harness.run("git_clone", {**args, "options": ["--recursive"]}).failure
    assert failure is not None
    assert "hunter2" not in failure.message + "".join(harness.log)
    assert elsewhere.seen, failure.message
    assert {authorization for _, authorization in elsewhere.seen} == {""}


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


# --- the plugin -----------------------------------------------------------------------------------


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
        words = {
            k: v.replace("/usr/local/pai/code", str(self.code)) for k, v in task["cmd"].items()
        }
        self.args: dict[str, Any] = words

    def run(self, to: Path, path: str = "") -> Outcome:
        """Copy."""
        env = {"CLONE_DIR": str(to), **({"PATH": path} if path else {})}
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


# --- the rest -------------------------------------------------------------------------------------


def test_messages_come_while_git_runs(harness: Harness, served: Served) -> None:
    """What git says appears before it ends: the server waits for the line."""
    said = threading.Event()
    log: list[str] = []

    def emit(line: str) -> None:
        log.append(line)
        said.set()

    def answer(request: Request) -> bool:
        assert said.wait(30)
        return False

    served.answer = answer
    module: Any = harness.make(
        "git_clone", {"repo": served.url("a"), "dest": str(harness.pai_dir / "code")}
    )
    context = harness.context()
    context._emit_log = emit
    module.apply(context)
    assert log[0].startswith("Cloning into")
    assert any("100%" in line for line in log)
    assert not any("\r" in line for line in log)


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
