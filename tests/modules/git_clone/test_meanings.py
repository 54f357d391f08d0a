"""What servers do, and the words for it (docs/git.md)."""

from __future__ import annotations

import email.utils
import os
import re
import ssl
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pairun.testing import Outcome
    from tests.modules.conftest import Harness
from tests.modules.git_clone.conftest import (
    LOCKED,
    ROOT,
    Served,
    commit,
    git,
    repository,
    submodule,
)
from tests.webserver import Answer, Asked

DOCUMENT = ROOT / "docs" / "git.md"


class Stage:
    """What the table of servers' behaviour is played on."""

    def __init__(self, harness: Harness, served: Served, closed_port: int) -> None:
        self.harness = harness
        self.served = served
        self.closed_port = closed_port

    def clone(self, repo: str, env: dict[str, str] | None = None, **more: Any) -> Outcome:
        """Clone."""
        args = {"repo": repo, "dest": str(self.harness.pai_dir / "code"), **more}
        return self.harness.run("git_clone", args, env)

    def answers(self, status: int, user: str = "", body: bytes = b"", **headers: str) -> Outcome:
        """Clone from a server that has one answer."""
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        given = {**(LOCKED.headers if status == 401 else {}), **fields}
        self.served.answer = lambda asked: (
            LOCKED if user and not asked.authorization else Answer(status, given, body)
        )
        return self.clone(self.served.address("a", user))

    def hangs(self) -> Outcome:
        """Clone from a server that never answers."""
        self.served.answer = self.served.hang
        return self.clone(self.served.address("a"), stall="1s")

    def cuts(self) -> Outcome:
        """Clone from a server that breaks off."""

        def cut(asked: Asked) -> Answer | None:
            if not asked.path.endswith("git-upload-pack") or b"command=fetch" not in asked.body:
                return None
            status, headers, body, _ = self.served.backend(asked)
            whole = {"Content-Length": str(len(body)), "Connection": "close"}
            return Answer(status, {**headers, **whole}, body[: len(body) // 2])

        self.served.answer = cut
        return self.clone(self.served.address("a"))

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
        if os.geteuid() != 0:
            pytest.skip("mounting needs root")
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=200k", "none", str(mounted)], check=True
        )
        try:
            return self.clone(self.served.address("big"), dest=str(mounted / "code"))
        finally:
            subprocess.run(["umount", str(mounted)], check=True)

    def empty(self) -> Outcome:
        """Clone a repository without a commit."""
        git(self.served.root, "init", "-q", "--bare", "-b", "main", "empty.git")
        return self.clone(self.served.address("empty"))

    def unsafe(self) -> Outcome:
        """Clone a repository with a submodule that would run a command."""
        outer = repository(self.served.root / "outer.git")
        submodule(outer, "sub", "ext::sh -c false", git(outer, "rev-parse", "HEAD"))
        return self.clone(self.served.address("outer"), options=["--recursive"])

    def damaged(self) -> Outcome:
        """Clone a repository that has lost a file's content."""
        path = repository(self.served.root / "damaged.git", ("f", "content\n"))
        blob = git(path, "rev-parse", "HEAD:f")
        (path / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
        return self.clone(self.served.address("damaged"))

    def ssh(self, said: str) -> Outcome:
        """Clone from an ssh server that says something and ends."""
        programs = self.harness.tmp / "bin"
        programs.mkdir()
        (programs / "ssh").write_text(f"#!/bin/sh\necho '{said}' >&2\nexit 255\n")
        (programs / "ssh").chmod(0o755)
        return self.clone("git@git.invalid:a", {"PATH": f"{programs}:{os.environ['PATH']}"})

    def changed(self) -> Outcome:
        """Clone over a clone with work in it."""
        assert self.clone(self.served.address("a")).failure is None
        (self.harness.pai_dir / "code" / "mine").write_text("x")
        commit(self.served.root / "a.git", "more", "x")
        return self.clone(self.served.address("a"))


_NO_NAME = "ssh: Could not resolve hostname git.invalid"

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
    "the name does not exist": lambda s: s.ssh(f"{_NO_NAME}: Name or service not known"),
    "no name server answers": lambda s: s.ssh(f"{_NO_NAME}: Temporary failure in name resolution"),
    "the connection is refused": lambda s: s.clone(f"http://127.0.0.1:{s.closed_port}/a.git"),
    "the server hangs": lambda s: s.hangs(),
    "the connection breaks in the middle": lambda s: s.cuts(),
    "the certificate is not trusted": lambda s: s.untrusted(),
    "ssh: the host key is not known": lambda s: s.ssh("Host key verification failed."),
    "ssh: the key is refused": lambda s: s.ssh("git@x: Permission denied (publickey)."),
    "the branch does not exist": lambda s: s.clone(s.served.address("a"), branch="nope"),
    "the commit does not exist": lambda s: s.clone(s.served.address("a"), commit="01234567" * 5),
    "the repository is empty": lambda s: s.empty(),
    "the repository is damaged": lambda s: s.damaged(),
    "a submodule has an address that is not allowed": lambda s: s.unsafe(),
    "the disk is full": lambda s: s.full(),
    "`dest` holds a clone with work in it": lambda s: s.changed(),
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


def test_a_damaged_repository_is_not_retried(harness: Harness, origin: Path) -> None:
    """A clone whose checkout fails is permanent, and git's advice is not the message."""
    blob = git(origin, "rev-parse", "HEAD:second")
    (origin / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    args = {"repo": str(origin), "dest": str(harness.pai_dir / "code")}
    failure = harness.run("git_clone", args).failure
    assert failure is not None
    assert (failure.kind, failure.fault) == ("permanent", "unknown")
    assert "damaged" in failure.message
    assert "retry with" not in failure.message


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
    served.answer = lambda _: Answer(429, header)
    args = {"repo": served.address("a"), "dest": str(harness.pai_dir / "code")}
    failure = harness.run("git_clone", args).failure
    assert failure is not None
    assert failure.retry_after_s is not None
    assert least <= failure.retry_after_s <= most
    assert len(served.asked) == 1


def test_a_wait_of_an_earlier_answer_does_not_count(harness: Harness, served: Served) -> None:
    """A Retry-After counts only where it stands in the last answer, and that is a refusal."""
    locked = {**LOCKED.headers, "Retry-After": "99"}
    served.answer = lambda asked: Answer(503) if asked.authorization else Answer(401, locked)
    args = {"repo": served.address("a", "u:p@"), "dest": str(harness.pai_dir / "code")}
    failure = harness.run("git_clone", args).failure
    assert failure is not None
    assert (failure.kind, failure.retry_after_s) == ("transient", None)
