"""Clones from a real git server, through the real executor."""

from __future__ import annotations

import contextlib
import functools
import http.server
import os
import subprocess
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import requests

from pairun.contract.loading import ModuleFile, plan_loader
from pairun.contract.sources import built_in_modules, read_source
from pairun.executor.phase import Executor, PhaseOutcome
from pairun.executor.shared import Shared
from pairun.module import Secret
from pairun.plan import Group, Late, Plan, Step, Task
from pairun.secrets.vault import Vault

if TYPE_CHECKING:
    from tests.real.conftest import Lab

MODULE = read_source("git_clone", built_in_modules()["git_clone"])
PASSWORDS = ("s3cret", "wrong-password")


def _no_late(late: Late, results: Mapping[str, Any], env: Mapping[str, str]) -> Any:
    raise AssertionError("nothing is late here")


class Init:
    """An init phase of clones, with the executor that a Pod has."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.events: list[dict[str, Any]] = []

    def task(self, name: str, repo: str, **more: Any) -> Task:
        """A clone with the retries of the plugin."""
        args = {"repo": Secret(repo) if "@" in repo else repo, "dest": str(self.folder / name)}
        args |= more.pop("args", {})
        defaults: dict[str, Any] = {"retries": 9, "delay_s": 2.0, "deadline_s": 300.0}
        return Task(
            id=name, name=f"Clone {name}", module="git_clone", args=args, **{**defaults, **more}
        )

    def run(
        self, *steps: Step, hook: Callable[[dict[str, Any]], None] = lambda _: None
    ) -> PhaseOutcome:
        """Run them; the hook sees every event as it happens."""
        file = ModuleFile(path=MODULE.path, sha256=MODULE.sha256(), built_in=True)
        files = {"git_clone": file}
        plan = Plan(phase="init", steps=steps, modules=files)

        def emit(event: dict[str, Any]) -> None:
            self.events.append(event)
            hook(event)

        shared = Shared(
            load=plan_loader(plan.modules),
            resolve=_no_late,
            emit=emit,
            vault=Vault([]),
            env={"PATH": os.environ["PATH"], "HOME": str(self.folder)},
            pai_dir=str(self.folder),
        )
        executor = Executor(plan, shared)
        # what pytest captures is no descriptor, and an attempt prints into descriptors
        plain = open(1, "w", encoding="utf-8", closefd=False)
        with plain, contextlib.redirect_stdout(plain), executor.loop:
            return executor.run_tasks()

    def of(self, kind: str) -> list[dict[str, Any]]:
        """The events of a kind."""
        return [e for e in self.events if e["type"] == kind]

    def head(self, name: str) -> str:
        """The commit of a clone, which must be whole and clean."""
        where = self.folder / name
        git(where, "fsck", "--full", "--strict")
        assert git(where, "status", "--porcelain") == ""
        return git(where, "rev-parse", "HEAD")


def git(where: Path, *words: str) -> str:
    """Run git for the test itself."""
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
    done = subprocess.run(
        ["git", *identity, *words], cwd=where, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture
def init(tmp_path: Path) -> Init:
    """An init phase."""
    return Init(tmp_path)


@pytest.fixture
def repo(lab: Lab, git_server: Mapping[str, str]) -> Iterator[Path]:
    """A new bare repository on the server."""
    name = f"test-{uuid.uuid4().hex[:12]}"
    lab("git", "repo", name)
    bare = Path(git_server["LAB_GIT_REPOS"], f"{name}.git")
    yield bare
    subprocess.run(["rm", "-rf", str(bare)], check=True)


def push(bare: Path, name: str) -> str:
    """Move the branch main by a commit with one more file; return its id."""
    blob = git(bare, "hash-object", "-w", "/dev/null")
    tree = git(bare, "ls-tree", "main") + f"\n100644 blob {blob}\t{name}\n"
    made = subprocess.run(
        ["git", "mktree"], cwd=bare, input=tree, capture_output=True, text=True, check=True
    ).stdout.strip()
    sha = git(bare, "commit-tree", "-p", "main", "-m", name, made)
    git(bare, "update-ref", "refs/heads/main", sha)
    return sha


def test_an_open_repository(init: Init, git_server: Mapping[str, str], repo: Path) -> None:
    """It is cloned in one attempt, in full, shallow and by commit; a second run changes nothing."""
    first = git(repo, "rev-parse", "main")
    last = push(repo, "more")
    url = f"{git_server['LAB_GIT_URL']}/{repo.name}"
    tasks = [
        init.task("full", url),
        init.task("shallow", url, args={"depth": 1}),
        init.task("commit", url, args={"depth": 1, "commit": first}),
        init.task("short", url, args={"commit": first[:8]}),
    ]
    for outcome in ("changed", "ok"):
        init.events.clear()
        assert init.run(*tasks).event == "success"
        assert [e["outcome"] for e in init.of("attempt_end")] == [outcome] * 4
    assert [init.head(t.id) for t in tasks] == [last, last, first, first]
    assert git(init.folder / "shallow", "rev-list", "--count", "HEAD") == "1"


def test_an_account(init: Init, git_server: Mapping[str, str], repo: Path) -> None:
    """Right credentials clone; wrong and absent ones end the task at once, each in its words."""
    door = git_server["LAB_GIT_AUTH_URL"]
    host = door.removeprefix("http://")
    right = f"http://{git_server['LAB_USER']}:{git_server['LAB_PASSWORD']}@{host}/{repo.name}"
    assert init.run(init.task("right", right)).event == "success"
    assert init.head("right") == git(repo, "rev-parse", "main")
    for name, url, says in (
        ("wrong", f"http://alice:wrong-password@{host}/{repo.name}", "does not accept the user"),
        ("absent", f"{door}/{repo.name}", "the address has no credentials"),
    ):
        outcome = init.run(init.task(name, url))
        assert outcome.failed == name
        assert says in outcome.message
        (end,) = [e for e in init.of("task_end") if e["task"] == name]
        assert (end["kind"], end["fault"], end["attempts"]) == ("permanent", "user", 1)
        assert end["hint"]
    everything = [str(init.events)]
    everything += [p.read_text(errors="replace") for p in init.folder.rglob("*") if p.is_file()]
    assert not any(password in text for password in PASSWORDS for text in everything)


def test_a_burst_on_a_server_that_limits(
    init: Init, git_server: Mapping[str, str], repo: Path
) -> None:
    """Clones that begin at once, more than the server takes, all succeed in the end."""
    url = f"{git_server['LAB_GIT_LIMITED_URL']}/{repo.name}"
    tasks = tuple(init.task(f"clone{n}", url) for n in range(4))
    outcome = init.run(Group(name="At once", tasks=tasks))
    assert outcome.event == "success", outcome.message
    assert {init.head(t.id) for t in tasks} == {git(repo, "rev-parse", "main")}
    waits = init.of("wait")
    assert waits
    for wait in waits:
        assert "the git server limits requests" in wait["because"]
        assert "the server requests a wait of 3s" in wait["because"]
        assert wait["seconds"] >= 3
    # In milliseconds, two random waits may be equal.
    assert len({w["seconds"] for w in waits}) > len(waits) / 2


def test_a_repository_that_moves_between_attempts(
    init: Init, git_server: Mapping[str, str], repo: Path
) -> None:
    """After an attempt that was cut off, the next one clones what is there then, as a whole."""
    moved: list[str] = []

    def hook(event: dict[str, Any]) -> None:
        if event["type"] == "wait" and not moved:
            moved.append(push(repo, "more"))

    # The branch is advertised, but the connection breaks in the middle of what belongs to it.
    with _Front(git_server["LAB_GIT_URL"], lambda: WHOLE if moved else CUT, _Passage) as url:
        outcome = init.run(init.task("moving", f"{url}/{repo.name}", delay_s=0.01), hook=hook)
    assert outcome.event == "success", outcome.message
    assert init.head("moving") == moved[0]
    assert (init.folder / "moving" / "more").exists()
    (wait,) = init.of("wait")
    assert "the connection to the git server broke" in wait["because"]


WHOLE, CUT = 1, 2
"""What a passage lets through: all of a pack, or its beginning."""


class _Front:
    """A server before the git server: it redirects there, asks for a password, or has an error."""

    def __init__(
        self, to: str, status: Callable[[], int], door: Callable[..., Any] | None = None
    ) -> None:
        self.to = to
        self.status = status
        self.seen: list[str] = []
        handler = functools.partial(door or _Door, self)
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)

    def __enter__(self) -> str:
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def __exit__(self, *exc: object) -> None:
        self.server.shutdown()
        self.server.server_close()


class _Door(http.server.BaseHTTPRequestHandler):
    def __init__(self, front: _Front, *args: Any) -> None:
        self.front = front
        super().__init__(*args)

    def do_GET(self) -> None:
        """Answer."""
        status = self.front.status()
        given = self.headers.get("Authorization", "")
        self.front.seen.append(given)
        if status == 401 and given:
            status = 302
        self.send_response(302 if status == 200 else status)
        self.send_header("WWW-Authenticate", 'Basic realm="x"')
        self.send_header("Location", self.front.to + self.path)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_POST = do_GET  # noqa: N815

    def log_message(self, format: str, *args: Any) -> None:
        """Keep the test's output clean."""


class _Passage(_Door):
    """Hands requests on to the server behind, and what it answers back."""

    def do_GET(self) -> None:
        """Hand a request on, and its whole answer back, but for a pack that is to break off."""
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {k: v for k, v in self.headers.items() if k.lower() != "host"}
        answer = requests.request(
            self.command, self.front.to + self.path, data=body, headers=headers, timeout=30
        )
        cut = self.command == "POST" and b"command=fetch" in body and self.front.status() == CUT
        self.send_response(answer.status_code)
        self.send_header("Content-Type", answer.headers["Content-Type"])
        self.send_header("Content-Length", str(len(answer.content)))
        self.end_headers()
        self.wfile.write(answer.content[: len(answer.content) // 2 if cut else None])
        self.close_connection = True

    do_POST = do_GET  # noqa: N815


@pytest.mark.parametrize("asks", [True, False])
def test_a_redirection_takes_no_credentials_along(
    init: Init, git_server: Mapping[str, str], repo: Path, asks: bool
) -> None:
    """Another host is not shown the account, though it would have been let in with it."""
    front = _Front(git_server["LAB_GIT_AUTH_URL"], lambda: 401 if asks else 302)
    account = f"{git_server['LAB_USER']}:{git_server['LAB_PASSWORD']}"
    with front as url:
        repo_url = f"{url}/{repo.name}".replace("http://", f"http://{account}@")
        outcome = init.run(init.task("redirected", repo_url))
    assert outcome.failed == "redirected"
    assert any(front.seen) == asks
    (end,) = init.of("task_end")
    assert (end["kind"], end["attempts"]) == ("permanent", 1)
    assert account.split(":")[1] not in str(init.events)
    assert not (init.folder / "redirected").exists()


def test_an_open_redirection_is_followed(
    init: Init, git_server: Mapping[str, str], repo: Path
) -> None:
    """A repository that has moved to another host is cloned from there."""
    with _Front(git_server["LAB_GIT_URL"], lambda: 302) as url:
        assert init.run(init.task("moved", f"{url}/{repo.name}")).event == "success"
    assert init.head("moved") == git(repo, "rev-parse", "main")
