"""Nothing starts a program."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.modules.conftest import Harness
from tests.modules.git_clone.conftest import (
    LOCKED,
    Served,
    clone_of,
    commit,
    git,
    repository,
    submodule,
)

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
    args = {"repo": served.address("hostile"), "dest": str(harness.pai_dir / "code")}
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
    url = served.address("hooked")
    submodule(outer, "A/modules/x", url, git(hooked, "rev-parse", "HEAD"), name="x/y")
    args = {"repo": served.address("linked"), "dest": str(harness.pai_dir / "code")}
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
    args = {"repo": served.address("paths"), "dest": str(harness.pai_dir / "code")}
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
        harness.run("git_clone", {"repo": served.address("filtered"), "dest": dest}, full).failure
        is None
    )
    served.answer = lambda _: LOCKED
    for number, repo in enumerate(
        (served.address("filtered"), "ssh://127.0.0.1:1/x", f"git://127.0.0.1:{closed_port}/x")
    ):
        args = {"repo": repo, "dest": f"{dest}{number}"}
        assert harness.run("git_clone", args, full).failure is not None
    assert not (harness.tmp / "marker").exists()


def test_a_hook_of_a_template_never_comes_along(harness: Harness, origin: Path) -> None:
    """A clone has no hooks, so that none runs later either."""
    assert harness.run("git_clone", clone_of(harness, origin)).failure is None
    hooks = harness.pai_dir / "code" / ".git" / "hooks"
    assert not hooks.exists() or not list(hooks.iterdir())


class _Said:
    """What a log says and reports."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.progressed: list[tuple[int, int | None]] = []

    def now(self) -> float:
        return 0.0

    def log(self, line: str) -> None:
        self.lines.append(line)

    def progress(self, done: int, total: int | None = None) -> None:
        self.progressed.append((done, total))


def test_a_transfer_is_reported_in_bytes() -> None:
    """The count of objects promises how many bytes there are in all; other progress is a line."""
    said = _Said()
    log = importlib.import_module("modules.git_clone.program")._Log(said)
    log.take(b"Receiving objects:   0% (1/1000)\rReceiving objects:  25% (250/10")
    log.take(b"00), 3.00 MiB | 1.00 MiB/s\rReceiving objects: 50% (1/2), 1..2 MiB\r")
    log.take(b"Receiving objects: 100% (1000/1000), 12.00 MiB, done.\nfatal: it broke\n")
    assert said.progressed == [(3 << 20, 12 << 20)]
    assert said.lines == [
        "Receiving objects: 100% (1000/1000), 12.00 MiB, done.",
        "fatal: it broke",
    ]
