"""A real HTTP server that plays a registry, and the module image_check that asks it."""

from __future__ import annotations

import base64
import importlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from pairun.contract.loading import load_module
from pairun.host.context import HostContext
from pairun.module import (
    CheckModule,
    Failure,
    Fetched,
    Permanent,
    Result,
    TimedOut,
    Transient,
)
from tests.webserver import Answer, Asked, Reply, WebServer

if TYPE_CHECKING:
    from tests.modules.conftest import Harness

USER, PASSWORD, TOKEN = "robot", "s3cret & <pass>\"'", "tok-0123456789.abc_def"


BASIC = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()


HIDDEN = (PASSWORD, TOKEN, BASIC.partition(" ")[2])


DIGEST = "sha256:" + "0123456789abcdef" * 4


OCI = {"Content-Type": "application/vnd.oci.image.index.v1+json", "Docker-Content-Digest": DIGEST}


class Server(WebServer):
    """A registry that answers by a function, or hangs where that says nothing."""

    behaviour: Callable[[Asked], Answer | None]

    def __init__(self) -> None:
        super().__init__(lambda asked: self.behaviour(asked) or self.hang())
        self.behaviour = lambda _: Answer(500)

    @property
    def manifests(self) -> list[Asked]:
        return [a for a in self.asked if "/manifests/" in a.path]


Part = Callable[[str], Any]


@pytest.fixture(scope="module")
def part() -> Part:
    """A file of the module's folder, by name."""
    cls = load_module("image_check", str(Path(__file__).parents[3] / "modules" / "image_check"))
    return lambda name: importlib.import_module(f"{cls.__module__}.{name}".rstrip("."))


@pytest.fixture
def registry() -> Iterator[Server]:
    """A registry; every request for a manifest must have been a HEAD."""
    server = Server()
    yield server
    server.close()
    assert {a.method for a in server.manifests} <= {"HEAD"}


@pytest.fixture(scope="module")
def shared_server() -> Iterator[Server]:
    """One server for all examples of a property."""
    server = Server()
    yield server
    server.close()


@pytest.fixture
def elsewhere() -> Iterator[Server]:
    """A second server, for token services and redirections."""
    server = Server()
    yield server
    server.close()


class Asking(NamedTuple):
    """One attempt of the check: its result, or its failure and whether that is harmless."""

    result: Result | None
    failure: Failure | None
    harmless: bool

    @property
    def message(self) -> str:
        """What is read when the image exists."""
        assert self.failure is None, self.failure
        assert self.result is not None
        return self.result.message

    @property
    def unknown(self) -> str:
        """What is read when nobody knows: a failure that may heal, and harms no job."""
        assert isinstance(self.failure, Transient | TimedOut), (self.failure, self.result)
        assert self.harmless
        return self.failure.message


@pytest.fixture
def ask(harness: Harness) -> Callable[..., Asking]:
    """Check an image; no text for people may hold a password or a token."""

    def run(image: str, auth: dict[str, Any] | None = None, **args: Any) -> Asking:
        deadline = args.pop("deadline", None)
        module = harness.make("image_check", {"image": image, "auth": auth, **args})
        assert isinstance(module, CheckModule)
        log: list[str] = []
        ctx = HostContext({"PATH": "/bin"}, str(harness.pai_dir), deadline, log.append)
        result, failure = None, None
        try:
            result = module.check(ctx)
        except Failure as e:
            failure = e
        texts = [*log, repr(result), str(failure), str(failure.hint if failure else "")]
        assert not [t for t in texts for hidden in HIDDEN if hidden in t]
        return Asking(result, failure, failure is not None and failure.kind in module.harmless)

    return run


def login(registry: str | None = None) -> dict[str, Any]:
    """A job's login."""
    return {"username": USER, "password": PASSWORD, "registry": registry}


def open_to_all(asked: Asked) -> Answer:
    return Answer(200, OCI) if asked.path.startswith("/v2/") else Answer(404)


def basic_only(asked: Asked) -> Answer:
    if asked.authorization == BASIC:
        return Answer(200, OCI)
    return Answer(401, {"WWW-Authenticate": 'Basic realm="the registry, of the team"'})


def with_token(
    realm: str,
    *,
    key: str = "token",
    scope: str = "repository:team/image:pull",
    anonymous: bool = False,
    then: int = 200,
) -> Reply:
    """A registry that wants a token; its service stands beside it or elsewhere."""

    def behave(asked: Asked) -> Answer:
        if asked.path == "/token":
            if asked.authorization != BASIC and not anonymous:
                return Answer(401)
            return Answer(200, {}, json.dumps({key: TOKEN, "expires_in": 60}).encode())
        if asked.authorization == f"Bearer {TOKEN}":
            return Answer(then, OCI if then == 200 else {})
        challenge = f'Bearer realm="{realm}",service="reg, one",scope="{scope}"'
        return Answer(401, {"WWW-Authenticate": challenge})

    return behave


def always(answer: Answer) -> Reply:
    """The same answer to everything but the entrance."""
    return lambda asked: Answer(200) if asked.path == "/v2/" else answer


def refused(said: Asking) -> str:
    """The sentence and the hint of a definite no, which is the user's."""
    assert isinstance(said.failure, Permanent), said
    assert said.failure.fault == "user"
    assert said.failure.hint
    assert not said.harmless
    return f"{said.failure.message}; {said.failure.hint}"


def fetches(
    harness: Harness, monkeypatch: pytest.MonkeyPatch, args: dict[str, Any], answers: list[Fetched]
) -> tuple[Result | None, list[tuple[str, bool]]]:
    """Check with given answers; every address asked, and whether a login was shown there."""
    asked: list[tuple[str, bool]] = []

    def fetch(url: str, **more: Any) -> Fetched:
        asked.append((url, "Authorization" in more["headers"]))
        return answers[len(asked) - 1]

    module = harness.make("image_check", args)
    assert isinstance(module, CheckModule)
    ctx = harness.context()
    monkeypatch.setattr(ctx, "fetch", fetch)
    try:
        return module.check(ctx), asked
    except Transient:
        return None, asked


def index(*platforms: Any) -> bytes:
    """An index with an entry per platform (a text, or the value itself)."""
    entries = []
    for p in platforms:
        parts = p.split("/") if isinstance(p, str) else []
        said = dict(zip(("os", "architecture", "variant"), parts, strict=False)) if parts else p
        entries.append({"digest": DIGEST, "platform": said} if said else {"digest": DIGEST})
    return json.dumps({"schemaVersion": 2, "manifests": entries}).encode()
