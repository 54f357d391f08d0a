"""The module git_clone, with real repositories and a real git."""

from __future__ import annotations

import http.server
import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pairun.module import Secret

if TYPE_CHECKING:
    from tests.modules.conftest import Harness

IDENTITY = {
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example.com",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.com",
    "GIT_CONFIG_GLOBAL": "/dev/null",
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


@pytest.fixture
def hostile_template(harness: Harness) -> Path:
    """A home whose git configuration installs a hook into every clone."""
    hooks = harness.tmp / "template" / "hooks"
    hooks.mkdir(parents=True)
    hook = hooks / "post-checkout"
    hook.write_text(f"#!/bin/sh\ntouch {harness.tmp}/hook-ran\n")
    hook.chmod(0o755)
    config = harness.tmp / "gitconfig"
    config.write_text(f"[init]\n\ttemplateDir = {hooks.parent}\n")
    return config


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


@pytest.mark.parametrize("other", ["repository", "commit", "branch"])
def test_another_clone_is_left_alone(harness: Harness, origin: Path, other: str) -> None:
    """A clone of another repository, commit or branch is an error that says which."""
    args = clone_of(harness, origin)
    assert harness.run("git_clone", args).failure is None
    if other == "repository":
        (harness.tmp / "alias").symlink_to(origin)
        args["repo"] = f"file://{harness.tmp}/alias"
    elif other == "commit":
        args["commit"] = git(origin, "rev-parse", "side")
    else:
        args["branch"] = "side"
    failure = harness.run("git_clone", args).failure
    assert failure is not None
    assert failure.kind == "permanent"
    assert "holds a clone" in failure.message


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


def test_submodules_are_of_the_commit(harness: Harness, origin: Path) -> None:
    """With a commit and --recursive the submodules are checked out as that commit has them."""
    outer = harness.tmp / "outer"
    outer.mkdir()
    git(outer, "init", "-q", "-b", "main")
    git(
        outer,
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "add",
        "-q",
        f"file://{origin}",
        "sub",
    )
    git(outer, "commit", "-q", "-m", "sub")
    sha = git(outer, "rev-parse", "HEAD")
    (harness.tmp / "config").write_text('[protocol "file"]\n\tallow = always\n')
    env = {"GIT_CONFIG_GLOBAL": "{tmp}/config"}
    args = clone_of(harness, outer, commit=sha, options=["--recursive"])
    assert harness.run("git_clone", args, env).failure is None
    assert (harness.pai_dir / "code" / "sub" / "second").read_text() == "2"


def test_no_hook_runs(harness: Harness, origin: Path, hostile_template: Path) -> None:
    """A hook that a template brings into the clone is not started."""
    env = {"GIT_CONFIG_GLOBAL": str(hostile_template)}
    assert harness.run("git_clone", clone_of(harness, origin), env).failure is None
    assert (harness.pai_dir / "code" / ".git" / "hooks" / "post-checkout").exists()
    assert not (harness.tmp / "hook-ran").exists()


BAD: list[tuple[dict[str, Any], str]] = [
    ({"repo": "--upload-pack=touch /x"}, "not an option"),
    ({"repo": "ext::sh -c touch% /x"}, "transport helper"),
    ({"repo": "fd::17"}, "transport helper"),
    ({"repo": "https://a/b\nc"}, "one line"),
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
    ({"options": ["'half"]}, "cannot be read"),
]


@pytest.mark.parametrize(("args", "says"), BAD, ids=lambda v: str(v)[:40])
def test_what_cannot_work_is_refused(harness: Harness, args: dict[str, Any], says: str) -> None:
    """What could start a program, or makes no sense, is an argument problem in words."""
    full = {"repo": "https://example.com/a.git", "dest": "/x", **args}
    assert [p for p in harness.problems("git_clone", full) if says in p.message]


class _Refuses(http.server.BaseHTTPRequestHandler):
    """A git server with one answer."""

    status = 500
    seen: list[str]

    def do_GET(self) -> None:
        type(self).seen.append(self.headers.get("Authorization", ""))
        given = "Authorization" in self.headers
        self.send_response(type(self).status if given or type(self).status != 403 else 401)
        self.send_header("WWW-Authenticate", 'Basic realm="x"')
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Keep the test's output clean."""


@pytest.fixture
def server() -> Iterator[tuple[type[_Refuses], str]]:
    """A running server, and its host and port."""
    handler = type("Handler", (_Refuses,), {"seen": []})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield handler, f"127.0.0.1:{running.server_address[1]}"
        running.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("status", "kind", "fault"),
    [
        (429, "transient", "platform"),
        (503, "transient", "platform"),
        (403, "permanent", "user"),
        (404, "permanent", "user"),
    ],
)
def test_the_servers_answer_decides_the_kind(
    harness: Harness, server: tuple[type[_Refuses], str], status: int, kind: str, fault: str
) -> None:
    """A busy server may heal, a refusal does not; credentials are sent and never shown."""
    handler, host = server
    handler.status = status
    repo = Secret(f"http://user:hunter2%21@{host}/a.git")
    args = {"repo": repo, "dest": str(harness.pai_dir / "code")}
    failure = harness.run("git_clone", args).failure
    assert failure is not None
    assert (failure.kind, failure.fault) == (kind, fault), failure.message
    assert "hunter2" not in failure.message + "".join(harness.log)
    # user:hunter2!
    sent = [seen for seen in handler.seen if seen]
    assert set(sent) <= {"Basic dXNlcjpodW50ZXIyIQ=="}
    assert bool(sent) == (status == 403)


def test_credentials_are_seen_by_nobody(harness: Harness, origin: Path) -> None:
    """No argument list, verdict or file of the clone has the password."""
    module = harness.make(
        "git_clone", {"repo": Secret("https://user:hunter2@example.invalid/a"), "dest": "/x"}
    )
    assert "hunter2" not in str(module)
    seen = harness.tmp / "argv"
    (harness.tmp / "bin").mkdir()
    fake = harness.tmp / "bin" / "git"
    fake.write_text(f'#!/bin/sh\necho "$@" >> {seen}\nexit 1\n')
    fake.chmod(0o755)
    args = {"repo": Secret("https://user:hunter2@h.invalid/a"), "dest": str(harness.pai_dir / "c")}
    harness.run("git_clone", args, {"PATH": f"{fake.parent}:{os.environ['PATH']}"})
    assert "hunter2" not in seen.read_text()
    assert "https://h.invalid/a" in seen.read_text()


def test_an_unknown_host_may_heal(harness: Harness) -> None:
    """A name that does not resolve is the platform's, and is tried again."""
    args = {"repo": "http://no-such-host.invalid/a", "dest": str(harness.pai_dir / "code")}
    env = {"http_proxy": "", "https_proxy": "", "no_proxy": "*"}
    failure = harness.run("git_clone", args, env).failure
    assert failure is not None
    assert (failure.kind, failure.fault) == ("transient", "platform")


def test_without_git_it_fails_in_words(harness: Harness, origin: Path) -> None:
    """A missing git is named."""
    failure = harness.run("git_clone", clone_of(harness, origin), {"PATH": "/nowhere"}).failure
    assert failure is not None
    assert "the program git does not exist here" in failure.message
