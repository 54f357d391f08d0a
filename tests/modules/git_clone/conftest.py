"""Repositories, and servers that misbehave."""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import socket
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.webserver import Answer, Asked, Reply, WebServer

if TYPE_CHECKING:
    from tests.modules.conftest import Harness


ROOT = pathlib.Path(__file__).parents[3]


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

    def answer(asked: Asked) -> Answer | None:
        if asked.path.endswith("/objects/batch"):
            href = f"http://127.0.0.1:{served.port}/store/{OID}"
            entry = {"oid": OID, "size": len(CONTENT), "actions": {"download": {"href": href}}}
            body = json.dumps({"transfer": "basic", "objects": [entry]}).encode()
            return Answer(200, {"Content-Type": "application/vnd.git-lfs+json"}, body)
        return Answer(200, body=CONTENT) if asked.path == f"/store/{OID}" else None

    served.answer = answer
    return served


class Served(WebServer):
    """A git server over http, below one directory: git's own http-backend answers, unless a test does.

    Attributes:
        root: its repositories, ``NAME.git``.
        answer: answers a request, or leaves it to git.
    """

    def __init__(self, root: Path, tls: ssl.SSLContext | None = None) -> None:
        self.root = root
        self.answer: Reply = lambda _: None
        super().__init__(lambda asked: self.answer(asked) or self.backend(asked), tls)

    def backend(self, asked: Asked) -> Answer:
        """What git's http-backend answers (git-http-backend(1))."""
        env = {
            **os.environ,
            **IDENTITY,
            "GIT_PROJECT_ROOT": str(self.root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_PROTOCOL": asked.headers.get("git-protocol", ""),
            "REQUEST_METHOD": asked.method,
            "PATH_INFO": asked.path,
            "QUERY_STRING": asked.target.partition("?")[2],
            "CONTENT_TYPE": asked.headers.get("content-type", ""),
            "HTTP_CONTENT_ENCODING": asked.headers.get("content-encoding", ""),
        }
        done = subprocess.run(
            ["git", "http-backend"], env=env, input=asked.body, capture_output=True, check=False
        )
        head, _, body = done.stdout.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        return Answer(int(headers.pop("Status", "200").split()[0]), headers, body)

    def address(self, name: str, user: str = "", host: str = "127.0.0.1") -> str:
        """The address of a repository."""
        return f"http://{user}{host}:{self.port}/{name}.git"


LOCKED = Answer(401, {"WWW-Authenticate": 'Basic realm="x"'})
"""It wants a login."""


@pytest.fixture
def served(harness: Harness) -> Iterator[Served]:
    """A running git server with a repository ``a``."""
    repository(harness.tmp / "repositories" / "a.git")
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
