"""The module image_check, against a real HTTP server that plays a registry."""

from __future__ import annotations

import base64
import email.utils
import http.server
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pairun.contract.loading import load_module
from pairun.host.context import HostContext
from pairun.host.worlds import ReviewContext
from pairun.module import (
    CheckModule,
    Failure,
    Fetched,
    Permanent,
    Result,
    Secret,
    Skip,
    TimedOut,
    Transient,
    UnknownUntilRun,
)
from pairun.plan import Task
from pairun.review.verdict import judge
from tests.effort import cases

if TYPE_CHECKING:
    from tests.modules.conftest import Harness

USER, PASSWORD, TOKEN = "robot", "s3cret & <pass>\"'", "tok-0123456789.abc_def"
BASIC = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
HIDDEN = (PASSWORD, TOKEN, BASIC.partition(" ")[2])
DIGEST = "sha256:" + "0123456789abcdef" * 4
OCI = {"Content-Type": "application/vnd.oci.image.index.v1+json", "Docker-Content-Digest": DIGEST}


# --- a registry ----------------------------------------------------------------------------------


class Asked(NamedTuple):
    """A request as the server saw it; header names in lower case."""

    method: str
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]

    @property
    def authorization(self) -> str | None:
        return self.headers.get("authorization")


class Answer(NamedTuple):
    """What it says."""

    status: int
    headers: Mapping[str, str] = MappingProxyType({})
    body: bytes = b""


Behaviour = Callable[[Asked], Answer | None]


class Server:
    """A server in a thread; it answers by a function, or hangs where that says nothing.

    Attributes:
        asked: every request, in order.
        behaviour: the function.
    """

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.behaviour: Behaviour = lambda _: Answer(500)
        self._let_go = threading.Event()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                headers = {name.lower(): value for name, value in self.headers.items()}
                asked = Asked(self.command, parts.path, parse_qs(parts.query), headers)
                outer.asked.append(asked)
                answer = outer.behaviour(asked)
                if answer is None:
                    outer._let_go.wait(30)
                    return
                self.send_response_only(answer.status)
                for name, value in answer.headers.items():
                    for line in value.split("\n"):
                        self.send_header(name, line)
                self.send_header("Content-Length", str(len(answer.body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(answer.body)

            do_HEAD = do_GET  # noqa: N815 - http.server's name

            def log_message(self, *args: Any) -> None:
                pass

        class Quiet(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *args: Any) -> None:
                pass

        self._server = Quiet(("127.0.0.1", 0), Handler)
        self.host = f"127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def close(self) -> None:
        self._let_go.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def manifests(self) -> list[Asked]:
        return [a for a in self.asked if "/manifests/" in a.path]


Part = Callable[[str], Any]


@pytest.fixture(scope="module")
def part() -> Part:
    """A file of the module's folder, by name."""
    cls = load_module("image_check", str(Path(__file__).parents[2] / "modules" / "image_check"))
    return lambda name: sys.modules[f"{cls.__module__}.{name}".rstrip(".")]


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
) -> Behaviour:
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


def always(answer: Answer) -> Behaviour:
    """The same answer to everything but the entrance."""
    return lambda asked: Answer(200) if asked.path == "/v2/" else answer


# --- there -----------------------------------------------------------------------------------------


def test_an_image_that_is_there(registry: Server, ask: Callable[..., Asking]) -> None:
    """One HEAD of the manifest with every form in Accept, and no login to who did not ask."""
    registry.behaviour = open_to_all
    image = f"{registry.host}/team/image:V1.0_GPU"
    assert ask(image, login(registry.host)).message == f"{image} exists"
    (asked,) = registry.asked
    assert (asked.method, asked.path) == ("HEAD", "/v2/team/image/manifests/V1.0_GPU")
    assert asked.authorization is None
    for kind in ("oci.image.index.v1", "oci.image.manifest.v1", "list.v2", "manifest.v2"):
        assert f"{kind}+json" in asked.headers["accept"]


def test_a_digest_is_asked_for_by_digest(registry: Server, ask: Callable[..., Asking]) -> None:
    """Beside a digest the tag does not count."""
    registry.behaviour = open_to_all
    assert "exists" in ask(f"  {registry.host}/image:1@{DIGEST}\n").message
    assert registry.asked[0].path == f"/v2/image/manifests/{DIGEST}"


def test_an_explicit_http_prefix_is_plain_http(
    registry: Server, ask: Callable[..., Asking]
) -> None:
    """A registry without TLS is asked as the prefix says; https:// to it is trouble, no answer."""
    registry.behaviour = open_to_all
    assert "exists" in ask(f"http://{registry.host}/a").message
    assert ask(f"https://{registry.host}/a").unknown


@pytest.mark.parametrize("key", ["token", "access_token"])
def test_a_token_from_another_host(
    registry: Server, elsewhere: Server, ask: Callable[..., Asking], key: str
) -> None:
    """The service that the registry names gets login, service and scope; the registry the token."""
    scope = "repository:team/image:pull,push"
    realm = f"http://{elsewhere.host}/token"
    registry.behaviour = elsewhere.behaviour = with_token(realm, key=key, scope=scope)
    assert "exists" in ask(f"{registry.host}/team/image", login(registry.host)).message
    (asked,) = elsewhere.asked
    assert (asked.method, asked.authorization) == ("GET", BASIC)
    assert asked.query == {"service": ["reg, one"], "scope": [scope]}
    assert [a.authorization for a in registry.asked] == [None, f"Bearer {TOKEN}"]


def test_a_token_without_a_login(registry: Server, ask: Callable[..., Asking]) -> None:
    """A public image behind a token service needs none; a realm keeps the query that it has."""
    registry.behaviour = with_token(f"http://{registry.host}/token?account=x", anonymous=True)
    assert "exists" in ask(f"{registry.host}/team/image").message
    assert registry.asked[1].query["account"] == ["x"]
    assert registry.asked[1].authorization is None


def test_a_basic_login(registry: Server, ask: Callable[..., Asking]) -> None:
    """The login as it is, whatever characters the password has."""
    registry.behaviour = basic_only
    assert "exists" in ask(f"{registry.host}/a/b/c", login(f"http://{registry.host}/v1/")).message
    assert [a.authorization for a in registry.asked] == [None, BASIC]


def test_bearer_among_several_challenges(registry: Server, ask: Callable[..., Asking]) -> None:
    """Several challenges, in lines and within one, are told apart."""
    plain = with_token(f"http://{registry.host}/token")

    def behave(asked: Asked) -> Answer | None:
        answer = plain(asked)
        if answer is None or "WWW-Authenticate" not in answer.headers:
            return answer
        bearer = answer.headers["WWW-Authenticate"]
        return Answer(401, {"WWW-Authenticate": f'Negotiate abc==\nBasic realm="a, b", {bearer}'})

    registry.behaviour = behave
    assert "exists" in ask(f"{registry.host}/team/image", login(registry.host)).message


def test_a_private_image_that_is_hidden_from_strangers(
    registry: Server, ask: Callable[..., Asking]
) -> None:
    """Where strangers get 404 instead of a challenge, the login is used before it is believed."""

    def behave(asked: Asked) -> Answer:
        if asked.path == "/v2/":
            return basic_only(asked)
        return Answer(200, OCI) if asked.authorization == BASIC else Answer(404)

    registry.behaviour = behave
    assert "exists" in ask(f"{registry.host}/a", login(registry.host)).message
    assert isinstance(ask(f"{registry.host}/a").failure, Permanent)


# --- a definite no ---------------------------------------------------------------------------------


def refused(said: Asking) -> str:
    """The sentence and the hint of a definite no, which is the user's."""
    assert isinstance(said.failure, Permanent), said
    assert said.failure.fault == "user"
    assert said.failure.hint
    assert not said.harmless
    return f"{said.failure.message}; {said.failure.hint}"


def test_an_image_that_is_not_there(registry: Server, ask: Callable[..., Asking]) -> None:
    """A registry's 404 is definite, at the first try, and names the image."""
    registry.behaviour = always(Answer(404))
    said = refused(ask(f"{registry.host}/team/image:nope"))
    assert f"image {registry.host}/team/image:nope does not exist" in said
    assert "a private image needs a login" in said
    assert len(registry.manifests) == 1


def test_not_there_with_a_token(registry: Server, ask: Callable[..., Asking]) -> None:
    """After a token, 404 says "not there" and 401 or 403 "not for you"."""
    for status, words in ((404, "does not exist"), (401, "refuses"), (403, "refuses")):
        registry.behaviour = with_token(f"http://{registry.host}/token", then=status)

        def behave(asked: Asked, inner: Behaviour = registry.behaviour) -> Answer | None:
            return Answer(401) if asked.path == "/v2/" else inner(asked)

        registry.behaviour = behave
        assert words in refused(ask(f"{registry.host}/team/image", login(registry.host)))


@pytest.mark.parametrize("status", [401, 403])
def test_a_login_that_the_token_service_refuses(
    registry: Server, ask: Callable[..., Asking], status: int
) -> None:
    """A wrong password is definite."""
    inner = with_token(f"http://{registry.host}/token")
    registry.behaviour = lambda a: Answer(status) if a.path == "/token" else inner(a)
    assert "refuses the job's login" in refused(ask(f"{registry.host}/a", login(registry.host)))


def test_without_a_login_the_token_service_is_asked_first(
    registry: Server, ask: Callable[..., Asking]
) -> None:
    """A 401 alone proves nothing; after the service's refusal it does."""
    registry.behaviour = with_token(f"http://{registry.host}/token")
    assert "does not show a without a login" in refused(ask(f"{registry.host}/a"))
    assert [a.path for a in registry.asked] == ["/v2/a/manifests/latest", "/token"]


def test_a_basic_registry_without_a_login(registry: Server, ask: Callable[..., Asking]) -> None:
    """Who asks for a login and gets none has said no."""
    registry.behaviour = basic_only
    assert "without a login" in refused(ask(f"{registry.host}/a"))
    for auth in ({"username": USER}, {"username": "", "password": PASSWORD}, {"password": "x"}):
        assert "without a login" in refused(ask(f"{registry.host}/a", auth))


def test_a_wrong_basic_login(registry: Server, ask: Callable[..., Asking]) -> None:
    """The login was shown once, and not again."""
    registry.behaviour = basic_only
    auth = {"username": USER, "password": "wrong", "registry": registry.host}
    assert "refuses the job's login" in refused(ask(f"{registry.host}/a", auth))
    assert len(registry.asked) == 2


@pytest.mark.parametrize("given", [None, "", "https://index.docker.io/v1/", "other.example:5000"])
def test_a_login_for_another_registry_stays_here(
    registry: Server, ask: Callable[..., Asking], given: str | None
) -> None:
    """Nobody but the registry it is for sees a login, and the hint says why it was not used."""
    registry.behaviour = basic_only
    whose = "other.example:5000" if given and "other" in given else "docker.io"
    said = refused(ask(f"{registry.host}/a", login(given)))
    assert f"the job's login is for {whose}, so it was not used" in said
    assert [a.authorization for a in registry.asked] == [None]


def test_an_invalid_name_is_the_users(ask: Callable[..., Asking]) -> None:
    """The part that is wrong is shown, and nobody is asked."""
    assert "'Image' in the repository's name is wrong" in refused(ask("r.example/team/Image:1"))


def test_a_warning_does_not_fail(registry: Server, ask: Callable[..., Asking]) -> None:
    """With the policy warn a definite no is harmless."""
    registry.behaviour = always(Answer(404))
    said = ask(f"{registry.host}/a", policy="warn")
    assert isinstance(said.failure, Permanent)
    assert said.failure.message == f"image {registry.host}/a:latest does not exist"
    assert said.harmless
    assert ask("A/b/C", policy="warn").harmless


def test_off_asks_nobody(registry: Server, ask: Callable[..., Asking]) -> None:
    """With the policy off, there is nothing to do, whatever the image's name."""
    with pytest.raises(Skip):
        ask(f"{registry.host}/Not A Name", policy="off")
    assert registry.asked == []


# --- unknown is no failure -------------------------------------------------------------------------


def test_busy(registry: Server, ask: Callable[..., Asking]) -> None:
    """A 429 says how long the executor must wait, in seconds or as a date."""
    date = email.utils.formatdate(time.time() + 40, usegmt=True)
    for asked_for, least, most in (("3600", 3600, 3600), (date, 20, 40)):
        registry.behaviour = always(Answer(429, {"Retry-After": asked_for}))
        said = ask(f"{registry.host}/a")
        assert said.unknown == f"{registry.host} answered 429"
        assert said.failure is not None
        assert said.failure.retry_after_s is not None
        assert least <= said.failure.retry_after_s <= most


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503])
def test_a_broken_registry_is_asked_once(
    registry: Server, ask: Callable[..., Asking], status: int
) -> None:
    """One attempt is one question: the executor retries."""
    registry.behaviour = always(Answer(status, {"Retry-After": "soon"}))
    assert ask(f"{registry.host}/a").unknown == f"{registry.host} answered {status}"
    assert len(registry.asked) == 1


@pytest.mark.parametrize(
    "answer",
    [
        Answer(400),
        Answer(403),
        Answer(405),
        Answer(418),
        Answer(401),
        Answer(401, {"WWW-Authenticate": "Negotiate"}),
        Answer(401, {"WWW-Authenticate": '"=,=,Bearer realm'}),
        Answer(401, {"WWW-Authenticate": 'Bearer realm="file:///etc/passwd"'}),
        Answer(401, {"WWW-Authenticate": 'Bearer realm="http://[:::/"'}),
        Answer(401, {"WWW-Authenticate": 'Bearer realm="http://user:pw@127.0.0.1/"'}),
        Answer(200, {"Content-Type": "text/html"}),
        Answer(204),
    ],
    ids=str,
)
def test_a_strange_answer_is_unknown(
    registry: Server, ask: Callable[..., Asking], answer: Answer
) -> None:
    """What no registry says is no verdict."""
    registry.behaviour = always(answer)
    assert ask(f"{registry.host}/a", login(registry.host)).unknown
    assert len(registry.asked) == 1


def test_a_web_server_is_no_registry(registry: Server, ask: Callable[..., Asking]) -> None:
    """A 404 from what does not speak the protocol is no "not there"."""
    registry.behaviour = lambda _: Answer(404, {"Content-Type": "text/html"}, b"<html>")
    assert "is not a registry" in ask(f"{registry.host}/a").unknown


@pytest.mark.parametrize(
    "answer",
    [
        Answer(404),
        Answer(400),
        Answer(200, {}, b"<html>"),
        Answer(200, {}, b"[1]"),
        Answer(200, {}, b"[" * 100_000),
        Answer(200, {}, b'{"token": 5}'),
        Answer(200, {}, b'{"token": "a\\r\\nX: y"}'),
        Answer(200, {}, b"{}"),
        Answer(200, {}, b'{"token": "' + b"x" * 2_000_000 + b'"}'),
        Answer(302, {"Location": "http://127.0.0.1:1/"}),
        Answer(302, {"Location": "/token"}),
    ],
    ids=lambda a: f"{a.status} {a.body[:30]!r}",
)
def test_a_strange_token_service_is_unknown(
    registry: Server, ask: Callable[..., Asking], answer: Answer
) -> None:
    """What is no token is no verdict."""
    inner = with_token(f"http://{registry.host}/token")
    registry.behaviour = lambda a: answer if a.path == "/token" else inner(a)
    assert ask(f"{registry.host}/a", login(registry.host)).unknown


# --- redirections ----------------------------------------------------------------------------------

HEARD = "/v2/a/manifests/latest"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_login_does_not_follow_to_another_host(
    registry: Server, elsewhere: Server, ask: Callable[..., Asking], status: int
) -> None:
    """Another host is asked without the login; that it has the image counts."""
    sent = Answer(status, {"Location": f"http://{elsewhere.host}{HEARD}"})
    registry.behaviour = lambda a: sent if a.authorization else basic_only(a)
    elsewhere.behaviour = open_to_all
    assert "exists" in ask(f"{registry.host}/a", login(registry.host)).message
    assert [(a.method, a.authorization) for a in elsewhere.asked] == [("HEAD", None)]
    assert "manifest.v2+json" in elsewhere.asked[0].headers["accept"]


@pytest.mark.parametrize("status", [401, 403, 404, 418])
def test_only_the_yes_of_another_host_counts(
    registry: Server, elsewhere: Server, ask: Callable[..., Asking], status: int
) -> None:
    """What another host refuses or lacks says nothing about the registry."""
    registry.behaviour = always(Answer(307, {"Location": f"http://{elsewhere.host}{HEARD}"}))
    elsewhere.behaviour = always(Answer(status, {"WWW-Authenticate": "Basic"}))
    said = ask(f"{registry.host}/a", login(registry.host))
    assert said.unknown == f"{registry.host} redirects to a server that answered {status}"
    assert len(elsewhere.asked) == 1


def test_a_login_stays_away_after_a_detour(
    registry: Server, elsewhere: Server, ask: Callable[..., Asking]
) -> None:
    """Once another host had a word in it, the login is not shown to anybody, not even at home."""
    there = Answer(307, {"Location": f"http://{elsewhere.host}{HEARD}"})
    registry.behaviour = lambda a: there if a.authorization else basic_only(a)
    elsewhere.behaviour = lambda _: Answer(307, {"Location": f"http://{registry.host}{HEARD}"})
    assert "that answered 401" in ask(f"{registry.host}/a", login(registry.host)).unknown
    assert [a.authorization for a in registry.asked] == [None, BASIC, None]
    assert [a.authorization for a in elsewhere.asked] == [None]


def test_a_redirection_at_home_is_followed_with_the_login(
    registry: Server, ask: Callable[..., Asking]
) -> None:
    """A relative or absolute address of the same server is the same registry."""

    def behave(asked: Asked) -> Answer:
        if asked.path == HEARD:
            return Answer(308, {"Location": "//" + registry.host + "/v2/b/manifests/latest"})
        if asked.path == "/v2/b/manifests/latest":
            return Answer(302, {"Location": "../../c/manifests/latest"})
        return basic_only(asked)

    registry.behaviour = behave
    assert "exists" in ask(f"{registry.host}/a", login(registry.host)).message
    assert [a.authorization for a in registry.asked] == [None] * 3 + [BASIC] * 3
    registry.behaviour = lambda a: behave(a) if a.path == HEARD else Answer(404)
    assert "is not a registry" in ask(f"{registry.host}/a").unknown


@pytest.mark.parametrize(
    "location",
    ["", HEARD, "ftp://r.example/", "http://[:::/", "http://r.example:x/", "file:///etc/passwd",
     "https:///a", "//u:p@127.0.0.1/", "http://127.0.0.1:1\\@r.example/"],
)  # fmt: skip
def test_a_redirection_to_nowhere(
    registry: Server, ask: Callable[..., Asking], location: str
) -> None:
    """A loop ends after a few rounds; an address that is none is unknown."""
    registry.behaviour = always(Answer(302, {"Location": location} if location else {}))
    assert ask(f"{registry.host}/a", login(registry.host)).unknown
    assert len(registry.asked) <= 6


def test_a_token_service_that_sends_elsewhere(
    registry: Server, elsewhere: Server, ask: Callable[..., Asking]
) -> None:
    """Nobody goes there; what it does at its own server is followed, with the login."""
    inner = with_token(f"http://{registry.host}/token")
    away = Answer(302, {"Location": f"http://{elsewhere.host}/token"})
    registry.behaviour = lambda a: away if a.path == "/token" else inner(a)
    said = ask(f"{registry.host}/a", login(registry.host))
    assert said.unknown == f"the token service of {registry.host} redirects to another server"
    assert elsewhere.asked == []
    inner = with_token(f"http://{registry.host}/old")
    home = Answer(302, {"Location": "/token"})
    registry.behaviour = lambda a: home if a.path == "/old" else inner(a)
    assert "exists" in ask(f"{registry.host}/a", login(registry.host)).message


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


@pytest.mark.parametrize(
    ("scheme", "location", "follows", "shown"),
    [
        ("http", "https://r.example/x", True, True),
        ("http", "https://R.EXAMPLE:443/x", True, True),
        ("http", "https://r.example:8443/x", True, False),
        ("http", "http://r.example:8080/x", True, False),
        ("http", "http://r.example.evil.example/x", True, False),
        ("https", "https://r.example:443/x", True, True),
        ("https", "https://other.example/x", True, False),
        ("https", "http://r.example/x", False, False),
        ("https", "http://other.example/x", False, False),
    ],
)
def test_tls_may_begin_and_never_end(
    harness: Harness,
    monkeypatch: pytest.MonkeyPatch,
    scheme: str,
    location: str,
    follows: bool,
    shown: bool,
) -> None:
    """The same host counts as the same when TLS begins, on the usual ports; no way leads back."""
    answers = [
        Fetched(401, {"www-authenticate": ("Basic",)}, b""),
        Fetched(307, {"location": (location,)}, b""),
        Fetched(200, {"docker-content-digest": (DIGEST,)}, b""),
    ]
    args = {"image": f"{scheme}://r.example/a", "auth": login("r.example")}
    result, asked = fetches(harness, monkeypatch, args, answers)
    assert (result is not None) == follows
    assert asked[2:] == ([(location, shown)] if follows else [])


# --- the policy per registry -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("image", "registries", "outcome"),
    [
        ("r.example/a", {"*.azurecr.io": "off", "r.example": "warn"}, "warn"),
        ("r.example:5000/a", {"r.example": "warn"}, "warn"),
        ("R.Example:5000/a", {"r.example:5000": "off"}, "off"),
        ("r.example:5000/a", {"r.example:5001": "off"}, "policy"),
        ("t.azurecr.io/a", {"*.AZURECR.io": "off"}, "off"),
        ("azurecr.io.example/a", {"*.azurecr.io": "off"}, "policy"),
        ("r.example/a", {"r.*": "fail", "*": "off"}, "fail"),
        ("r.example/a", {"*": "off", "r.*": "fail"}, "off"),
        ("rxexample.org/a", {"r.example*": "off"}, "policy"),
        ("ubuntu", {"docker.io": "warn"}, "warn"),
        ("docker.io/a/b", {"index.docker.io": "off"}, "off"),
        ("[::1]:5000/a", {"[::1]": "off"}, "off"),
        ("Not/A/Name", {"*": "off"}, "policy"),
        ("r.example/a", {}, "policy"),
    ],
)
@pytest.mark.parametrize("policy", ["off", "warn", "fail"])
def test_a_registrys_own_policy_wins(
    harness: Harness,
    monkeypatch: pytest.MonkeyPatch,
    image: str,
    registries: dict[str, str],
    outcome: str,
    policy: str,
) -> None:
    """The first entry that fits decides, stricter or looser; `policy` is for all other registries."""
    args = {"image": image, "policy": policy, "registries": registries}
    expected = policy if outcome == "policy" else outcome
    try:
        with pytest.raises(Permanent):
            fetches(harness, monkeypatch, args, [Fetched(404, {}, b""), Fetched(200, {}, b"")])
    except Skip:
        assert expected == "off"
        return
    harmless = "permanent" in harness.make("image_check", args).harmless
    assert expected == ("warn" if harmless else "fail")


# --- platforms -------------------------------------------------------------------------------------


def index(*platforms: Any) -> bytes:
    """An index with an entry per platform (a text, or the value itself)."""
    entries = []
    for p in platforms:
        parts = p.split("/") if isinstance(p, str) else []
        said = dict(zip(("os", "architecture", "variant"), parts, strict=False)) if parts else p
        entries.append({"digest": DIGEST, "platform": said} if said else {"digest": DIGEST})
    return json.dumps({"schemaVersion": 2, "manifests": entries}).encode()


@pytest.fixture
def on(ask: Callable[..., Asking]) -> Iterator[Callable[..., Asking]]:
    """Check an image, of which the manifest (and the configuration) is given, for a platform."""
    server = Server()

    def run(platform: str, manifest: bytes, config: Answer | None = None, **more: Any) -> Asking:
        def behave(asked: Asked) -> Answer:
            if "/blobs/" in asked.path:
                return config or Answer(404)
            return Answer(200, OCI, b"" if asked.method == "HEAD" else manifest)

        server.behaviour = behave
        server.asked.clear()
        return ask(f"{server.host}/a", platform=platform, **more)

    yield run
    server.close()


BOTH = index("linux/amd64", "linux/arm64/v8", "unknown/unknown")


@pytest.mark.parametrize(
    ("platform", "offered"),
    [
        ("linux/amd64", BOTH),
        ("linux/arm64", BOTH),
        ("linux/x86_64", BOTH),
        ("linux/aarch64", BOTH),
        ("linux/arm64/v8", index("linux/arm64")),
        ("linux/arm/v7", index("linux/arm/v6")),
        ("linux/arm/v7", index("linux/arm")),
        ("linux/arm", index("linux/arm/v7")),
        ("linux/amd64/v3", index("linux/amd64/v2")),
        ("linux/amd64/v3", index("linux/amd64")),
        ("linux/amd64", index("linux/386")),
        ("linux/arm64", index("linux/arm/v7")),
        ("linux/amd64", index(None, 5, {"os": 1}, "linux/amd64")),
        ("windows/amd64", index("linux/amd64", "windows/amd64")),
    ],
)
def test_a_platform_that_the_image_has(
    on: Callable[..., Asking], platform: str, offered: bytes
) -> None:
    """Names are told apart as container engines do; a variant may be older, and may be unsaid."""
    assert " exists for " in on(platform, offered).message


@pytest.mark.parametrize(
    ("platform", "offered", "shown"),
    [
        ("linux/s390x", BOTH, "linux/amd64, linux/arm64/v8"),
        ("windows/amd64", BOTH, "linux/amd64, linux/arm64/v8"),
        ("linux/arm/v6", index("linux/arm/v7"), "linux/arm/v7"),
        ("linux/amd64/v2", index("linux/amd64/v3"), "linux/amd64/v3"),
        ("linux/386", index("linux/amd64"), "linux/amd64"),
        ("linux/amd64", index("wasi/wasm", "linux/" + PASSWORD, "linux/arm/" + TOKEN), "others"),
        ("linux/amd64", index("unknown/unknown"), "nothing"),
        ("linux/amd64", index(), "nothing"),
    ],
)
def test_a_platform_that_the_image_lacks(
    on: Callable[..., Asking], platform: str, offered: bytes, shown: str
) -> None:
    """That is definite, and the sentence says what there is, in words known here."""
    said = refused(on(platform, offered))
    assert f" is not built for {platform}, only for {shown};" in said


@pytest.mark.parametrize(
    "config",
    [b'{"os": "linux", "architecture": "amd64"}', b'{"os": "Linux", "architecture": "arm64"}'],
)
def test_a_single_image_says_it_in_its_configuration(
    on: Callable[..., Asking], config: bytes
) -> None:
    """Where there is no index the configuration is read, also where the registry keeps it away."""
    manifest = json.dumps({"config": {"digest": DIGEST}}).encode()
    platform = "linux/" + json.loads(config)["architecture"]
    assert "exists for" in on(platform, manifest, Answer(200, {}, config)).message
    assert "is not built for linux/s390x" in refused(
        on("linux/s390x", manifest, Answer(200, {}, config))
    )
    store = Server()
    store.behaviour = lambda _: Answer(200, {}, config)
    away = Answer(307, {"Location": f"http://{store.host}/blob?signed=1"})
    assert "exists for" in on(platform, manifest, away).message
    assert [a.authorization for a in store.asked] == [None]
    store.close()


@pytest.mark.parametrize(
    ("manifest", "config"),
    [
        (b"", None),
        (b"<html>", None),
        (b"[" * 100_000, None),
        (b"[]", None),
        (b'{"manifests": {}}', None),
        (b'{"manifests": [{}, 1]}', None),
        (index("linux/arm64") + b" " * 5_000_000, None),
        (b'{"config": 1}', None),
        (b'{"config": {"digest": "sha256:../../x"}}', None),
        (json.dumps({"config": {"digest": DIGEST}}).encode(), Answer(404)),
        (json.dumps({"config": {"digest": DIGEST}}).encode(), Answer(500)),
        (json.dumps({"config": {"digest": DIGEST}}).encode(), Answer(200, {}, b'{"os": "linux"}')),
        (json.dumps({"config": {"digest": DIGEST}}).encode(), Answer(200, {}, b" " * 5_000_000)),
    ],
    ids=lambda v: f"{str(v)[:60]}",
)
def test_a_platform_that_nobody_says(
    on: Callable[..., Asking], manifest: bytes, config: Answer | None
) -> None:
    """What cannot be read is unknown, not missing."""
    assert on("linux/amd64", manifest, config).unknown


@pytest.mark.parametrize("status", [201, 400, 403, 404])
def test_nothing_is_believed_of_an_error(
    elsewhere: Server, ask: Callable[..., Asking], status: int
) -> None:
    """A body that comes with another status than 200 is not looked at."""
    answer = Answer(status, OCI, index("linux/arm64"))
    elsewhere.behaviour = lambda a: Answer(200, OCI) if a.method == "HEAD" else answer
    assert "does not name" in ask(f"{elsewhere.host}/a", platform="linux/amd64").unknown


@pytest.mark.parametrize("depth", [*range(100, 1100, 50)])
def test_a_manifest_that_is_nested(part: Part, depth: int) -> None:
    """Depth is no trouble, wherever it is found."""
    deep = "[" * depth + "]" * depth
    for text in (f'{{"os": {deep}, "architecture": "a"}}', f'{{"config": {{"digest": {deep}}}}}'):
        document = part("registry")._json_object(Fetched(200, {}, text.encode()))
        assert part("platforms").platform_of(document) is None


@pytest.mark.parametrize(
    ("machine", "expected"),
    [
        ("x86_64", "linux/amd64"), ("aarch64", "linux/arm64"), ("armv7l", "linux/arm/v7"),
        ("ppc64le", "linux/ppc64le"), ("riscv64", "linux/riscv64"),
    ],
)  # fmt: skip
def test_the_platform_of_this_machine(
    part: Part, monkeypatch: pytest.MonkeyPatch, machine: str, expected: str
) -> None:
    """The kernel's word for it becomes the registry's."""
    real = os.uname()
    monkeypatch.setattr(os, "uname", lambda: type(real)((*tuple(real)[:4], machine)))
    assert str(part("platforms").parse_platform("node")) == expected


# --- secrets ---------------------------------------------------------------------------------------


@settings(max_examples=cases(150))
@given(data=st.data())
def test_what_a_server_repeats_is_shown_nowhere(
    shared_server: Server, part: Part, data: st.DataObject
) -> None:
    """A server that puts login and token into anything it may choose gets neither into a message."""
    host = shared_server.host
    words = ["s3cret", "TOK-1234", base64.b64encode(b"robot:s3cret").decode().rstrip("=")]
    word = data.draw(st.sampled_from(words))
    places = [
        f"Basic realm={word}", f"{word}", f"{word} {word}={word}", f'Bearer realm="http://{word}/"',
        f'Bearer realm="http://{host}/token",service="{word}"', f'Bearer realm="{word}"',
        f'Bearer realm="http://{host}/token/{word}"', f'Bearer realm="http://{word}@{host}/"', "Basic",
    ]  # fmt: skip
    said = json.dumps({"token": word, "errors": [{"message": word}]}).encode()
    variants = index(f"linux/{word}", f"{word}/amd64", f"linux/arm/{word}")
    answers = st.builds(
        Answer,
        st.sampled_from([200, 200, 401, 401, 302, 307, 404, 400, 403, 429, 503]),
        st.fixed_dictionaries(
            {},
            optional={
                "WWW-Authenticate": st.sampled_from(places),
                "Location": st.sampled_from(
                    [f"http://{word}/", f"http://x.{word}.invalid:1/", f"//{host}/{word}", word]
                ),
                "Retry-After": st.sampled_from([word, "0"]),
                "Content-Type": st.sampled_from([word, "application/json"]),
                "Docker-Content-Digest": st.just(word),
            },
        ),
        st.sampled_from([said, variants, word.encode(), b"{}"]),
    )
    script = data.draw(st.lists(answers, min_size=3, max_size=9))
    shared_server.asked.clear()
    shared_server.behaviour = lambda _: script[(len(shared_server.asked) - 1) % len(script)]
    check = part("").ImageCheck(
        image=f"{host}/a",
        auth={"username": "robot", "password": Secret("s3cret"), "registry": host},
        platform=data.draw(st.sampled_from([None, "linux/amd64"])),
    )
    log: list[str] = []
    ctx = HostContext({"PATH": "/bin"}, "/nowhere", None, log.append)
    try:
        log.append(repr(check.check(ctx)))
    except Failure as e:
        log += [e.message, str(e.hint), str(e), repr(e)]
    shown = "\n".join([*log, repr(check)]).lower()
    assert not [w for w in words if w.lower() in shown]


# --- time ------------------------------------------------------------------------------------------


def test_a_registry_that_hangs(registry: Server, ask: Callable[..., Asking]) -> None:
    """The timeout holds for all requests of an attempt together."""
    registry.behaviour = lambda _: None
    said = ask(f"{registry.host}/a", timeout="300ms")
    assert isinstance(said.failure, TimedOut)
    assert "did not answer within" in said.unknown


def test_the_attempts_own_time_counts(registry: Server, ask: Callable[..., Asking]) -> None:
    """The verdict comes before the attempt is stopped."""
    registry.behaviour = lambda _: None
    said = ask(f"{registry.host}/a", deadline=time.monotonic() + 1.3)
    assert "did not answer" in said.unknown
    assert ask(f"{registry.host}/a", deadline=time.monotonic()).unknown


def test_nobody_there(registry: Server, ask: Callable[..., Asking]) -> None:
    """No connection, and no such host, are unknown."""
    assert ask("127.0.0.1:1/a").unknown
    assert ask("no-such-host.invalid/a", timeout="3s").unknown


@pytest.mark.parametrize(
    ("host", "verdict"),
    [
        ("team.azurecr.io", "the node may have its own"),
        ("1234.dkr.ecr.eu-west-1.amazonaws.com", "the node may have its own"),
        ("gcr.io", "the node may have its own"),
        ("europe-docker.pkg.dev", "the node may have its own"),
        ("azurecr.io.example", "without a login"),
        ("team.azurecr.io.example", "without a login"),
        ("registry.example", "without a login"),
    ],
)
def test_registries_to_which_nodes_log_in_by_themselves(
    harness: Harness, monkeypatch: pytest.MonkeyPatch, host: str, verdict: str
) -> None:
    """Where nodes usually have a login, a refusal without the job's is no verdict."""
    module = harness.make("image_check", {"image": f"{host}/a"})
    assert isinstance(module, CheckModule)
    ctx = harness.context()
    answer = Fetched(401, {"www-authenticate": ('Basic realm="x"',)}, b"")
    monkeypatch.setattr(ctx, "fetch", lambda *args, **more: answer)
    with pytest.raises(Skip if "node" in verdict else Permanent, match=verdict):
        module.check(ctx)


def test_docker_hub_is_one_registry_of_many_names(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its API stands at one address, and a login under any of its names is for it."""
    names = ("docker.io", "index.docker.io", "registry-1.docker.io", "https://index.docker.io/v1/")
    images = (
        "ubuntu",
        "docker.io/ubuntu",
        "index.docker.io/library/ubuntu",
        "http://ubuntu:latest",
    )
    for image in images:
        for name in (*names, None):
            seen: list[tuple[str, Any]] = []

            def fetch(url: str, seen: list[tuple[str, Any]] = seen, **more: Any) -> Fetched:
                seen.append((url, more["headers"].get("Authorization")))
                if len(seen) == 1:
                    return Fetched(401, {"www-authenticate": ('Basic realm="x"',)}, b"")
                return Fetched(200, {"docker-content-digest": (DIGEST,)}, b"")

            module = harness.make("image_check", {"image": image, "auth": login(name)})
            assert isinstance(module, CheckModule)
            ctx = harness.context()
            monkeypatch.setattr(ctx, "fetch", fetch)
            result = module.check(ctx)
            assert result is not None
            assert result.message == "docker.io/library/ubuntu:latest exists"
            url = "https://registry-1.docker.io/v2/library/ubuntu/manifests/latest"
            assert [u for u, _ in seen] == [url, url]
            assert seen[1][1].reveal() == BASIC


def test_a_login_does_not_go_from_tls_to_plain_http(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A registry with TLS that names a token service without it gets nothing."""
    module = harness.make("image_check", {"image": "r.example/a", "auth": login("r.example")})
    assert isinstance(module, CheckModule)
    asked = []

    def fetch(url: str, **more: Any) -> Fetched:
        asked.append(url)
        return Fetched(401, {"www-authenticate": ('Bearer realm="http://r.example/t"',)}, b"")

    ctx = harness.context()
    monkeypatch.setattr(ctx, "fetch", fetch)
    with pytest.raises(Transient, match="unsafe token service"):
        module.check(ctx)
    assert len(asked) == 1


# --- arguments and the review ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "args",
    [
        {"auth": {"registryuri": "x"}},
        {"timeout": "0s"},
        {"policy": "maybe"},
        {"registries": {"r.example": "maybe"}},
        {"registries": {"https://r.example": "off"}},
        {"platform": ""},
        {"platform": "amd64"},
        {"platform": "linux/pdp11"},
        {"platform": "linux/arm/7/8"},
    ],
)
def test_arguments_that_cannot_work(harness: Harness, args: dict[str, Any]) -> None:
    """They are refused before anything runs."""
    assert len(harness.problems("image_check", {"image": "a", **args})) == 1


def test_a_login_that_comes_as_one_secret(registry: Server, ask: Callable[..., Asking]) -> None:
    """An expression that touches a secret is one secret: the mapping within counts."""
    registry.behaviour = basic_only
    auth: Any = Secret(json.dumps(login(registry.host)))
    assert "exists" in ask(f"{registry.host}/a", auth).message
    assert [a.authorization for a in registry.asked] == [None, BASIC]


@pytest.mark.parametrize("text", ["s3cret", "[1]", "5", "[" * 100_000])
def test_a_secret_that_is_no_login(harness: Harness, text: str) -> None:
    """It is refused, and not shown."""
    (problem,) = harness.problems("image_check", {"image": "a", "auth": Secret(text)})
    assert "not a secret" in problem.message
    assert "s3cret" not in f"{problem}"


def job(patch: dict[str, Any]) -> dict[str, Any]:
    """A job with a login, which patches arguments of the check."""
    auth = {"username": USER, "password": "<% $secrets.pw %>", "registryuri": "r.example"}
    extras = {"pairun": {"init": [{"patch": "image_check", "args": patch}]}} if patch else {}
    return {
        "protocolVersion": 2, "name": "j", "type": "job", "secrets": {"pw": PASSWORD},
        "extras": extras,
        "prerequisites": [
            {"name": "i", "type": "dockerimage", "uri": "r.example/team/train:1", "auth": auth}
        ],
        "taskRoles": {
            "w": {
                "dockerImage": "i", "commands": ["ls"],
                "resourcePerInstance": {"cpu": 1, "memoryMB": 128, "gpu": 0},
            }
        },
    }  # fmt: skip


def test_the_default_playbook_takes_the_login_of_a_job(tmp_path: Path) -> None:
    """A job whose login comes from its secrets is valid, and the review shows no password."""
    (tmp_path / "job.yaml").write_text(json.dumps(job({})))
    done = subprocess.run(
        [sys.executable, "-m", "pairun", "--dry-run", "--json", "job.yaml"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    tasks = json.loads(done.stdout)["roles"]["w"]["init"]
    (task,) = [t for t in tasks if t["id"] == "image_check"]
    assert task["args"]["image"] == "r.example/team/train:1"
    assert json.dumps(PASSWORD)[1:-1] not in done.stdout
    assert PASSWORD not in str(task)


def test_a_review_asks_nobody(harness: Harness) -> None:
    """In the empty Pod it is a check, and a fetch is unknown until run, without credentials."""
    ctx = ReviewContext({}, str(harness.pai_dir))
    cls = harness.load("image_check")
    task = Task(id="i", name="n", module="image_check", args={"image": "a"}, where="x:1")
    assert judge(task, cls, ctx).kind == "check"
    with pytest.raises(UnknownUntilRun, match="depends on the answer of host:1"):
        ctx.fetch("https://user:pw@host:1/path")


# --- the page --------------------------------------------------------------------------------------

PAGE = (Path(__file__).parents[2] / "docs" / "image-check.md").read_text()
ROWS = {
    row[0]: row[1:]
    for row in re.findall(r"^\| (.*?) \| (ok|fails|ignored) \| `(.*)` \|$", PAGE, re.MULTILINE)
}
CONFIG = Answer(200, {}, json.dumps({"config": {"digest": DIGEST}}).encode())
SCENES: dict[str, tuple[Answer, dict[str, Any]]] = {
    "has the image": (Answer(200, OCI), {}),
    "has no such tag, digest or repository": (Answer(404), {}),
    "requires a login and the job has none": (Answer(401, {"WWW-Authenticate": "Basic"}), {}),
    "refuses the job's login": (Answer(401, {"WWW-Authenticate": "Basic"}), {"auth": True}),
    "has the image, but not for `platform`": (
        Answer(200, OCI, index("linux/amd64", "linux/arm64")), {"platform": "linux/s390x"},
    ),
    "is not asked: the name is not valid": (Answer(200), {"path": "team/Train:1"}),
    "answers 429": (Answer(429), {}),
    "answers 500 to 599, or 408": (Answer(503), {}),
    "cannot be reached": (Answer(200), {"closed": True}),
    "does not answer in time": (Answer(-1), {"timeout": "200ms"}),
    "answers 404 as any web server would": (Answer(404), {"root": Answer(404)}),
    "answers with a web page": (Answer(200, {"Content-Type": "text/html"}), {}),
    "answers 401 and names no known login": (Answer(401), {}),
    "answers 403 and did not ask for a login": (Answer(403), {}),
    "redirects to another server that does not have it": (Answer(307, {"Location": "ELSEWHERE"}), {}),
    "redirects in a circle": (Answer(307, {"Location": "?"}), {}),
    "has a token service that is busy": (Answer(401, {"WWW-Authenticate": "TOKEN"}), {"token": 429}),
    "has a token service that redirects to another server": (
        Answer(401, {"WWW-Authenticate": "TOKEN"}), {"token": 302},
    ),
    "does not name the platforms of the image": (CONFIG._replace(headers=OCI), {"platform": "node"}),
}  # fmt: skip


def test_the_page_has_a_scene_for_every_row() -> None:
    """No row is without proof."""
    assert set(ROWS) == set(SCENES)


@pytest.mark.parametrize("row", SCENES)
def test_a_row_of_the_page(
    elsewhere: Server, shared_server: Server, ask: Callable[..., Asking], row: str
) -> None:
    """The user reads what the page says, and the outcome is the page's."""
    answer, args = SCENES[row][0], dict(SCENES[row][1])
    host = shared_server.host
    path, root = args.pop("path", "team/train:1"), args.pop("root", Answer(200))
    token = Answer(args.pop("token", 0), {"Location": f"http://{elsewhere.host}/"})
    words = {"ELSEWHERE": f"http://{elsewhere.host}/", "TOKEN": f'Bearer realm="http://{host}/t"'}
    answer = answer._replace(headers={k: words.get(v, v) for k, v in answer.headers.items()})
    elsewhere.behaviour = lambda _: Answer(404)

    def behave(asked: Asked) -> Answer | None:
        if asked.path == "/t":
            return token
        return root if asked.path == "/v2/" else answer if answer.status > 0 else None

    shared_server.behaviour = behave
    if args.pop("closed", False):
        host = "127.0.0.1:1"
    auth = login(host) if args.pop("auth", False) else None
    said = ask(f"{host}/{path}", auth, **args)
    outcome, text = ROWS[row]
    shown = said.failure.message if said.failure else said.message
    assert shown.replace(host, "registry.example.com") == text
    assert outcome == ("ok" if said.failure is None else "ignored" if said.harmless else "fails")


def test_the_patch_on_the_page(tmp_path: Path) -> None:
    """It changes the default playbook, and a job may not change it back."""
    (block,) = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    (tmp_path / "root/playbooks").mkdir(parents=True)
    (tmp_path / "root/playbooks/init.yaml").write_text(block)
    command = [sys.executable, "-m", "pairun", "--dry-run", "--json", "--root", "root", "job.json"]
    found = []
    patches: list[dict[str, Any]] = [{"policy": "warn"}, {"registries": {}}]
    for patch in patches:
        (tmp_path / "job.json").write_text(json.dumps(job(patch)))
        done = subprocess.run(
            command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
            capture_output=True, text=True,
        )  # fmt: skip
        found.append((done.returncode, json.loads(done.stdout)))
    (code, review), (refused_code, refusal) = found
    assert code == 0, review
    (task,) = [t for t in review["roles"]["w"]["init"] if t["id"] == "image_check"]
    assert task["args"]["registries"] == {
        "*.azurecr.io": "off",
        "registry.example.com:5000": "warn",
    }
    assert task["args"]["policy"] == "warn"
    assert refused_code == 1
    assert "image_check" in str(refusal["problems"])


# --- references ------------------------------------------------------------------------------------

HUB = "docker.io"
HEX = "0123456789abcdef" * 4
LONG = "/".join(["a" * 50] * 5)  # 254 characters

VALID: list[tuple[str, tuple[str, str, str | None, str | None, bool]]] = [
    ("ubuntu", (HUB, "library/ubuntu", "latest", None, False)),
    ("  ubuntu:22.04 \n", (HUB, "library/ubuntu", "22.04", None, False)),
    ("ubuntu:V1.0", (HUB, "library/ubuntu", "V1.0", None, False)),
    ("ubuntu:1.0_GPU", (HUB, "library/ubuntu", "1.0_GPU", None, False)),
    ("ubuntu:_x", (HUB, "library/ubuntu", "_x", None, False)),
    ("ubuntu:" + "T" * 128, (HUB, "library/ubuntu", "T" * 128, None, False)),
    (f"ubuntu@sha256:{HEX}", (HUB, "library/ubuntu", None, f"sha256:{HEX}", False)),
    (f"ubuntu:1@sha256:{HEX}", (HUB, "library/ubuntu", "1", f"sha256:{HEX}", False)),
    (f"a/b@sha512:{HEX * 2}", (HUB, "a/b", None, f"sha512:{HEX * 2}", False)),
    (f"a/b@sha384:{HEX[:32] * 3}", (HUB, "a/b", None, f"sha384:{HEX[:32] * 3}", False)),
    ("openpai/standard:python_3.6", (HUB, "openpai/standard", "python_3.6", None, False)),
    ("a/b/c/d", (HUB, "a/b/c/d", "latest", None, False)),
    ("docker.io/ubuntu", (HUB, "library/ubuntu", "latest", None, False)),
    ("docker.io/library/ubuntu", (HUB, "library/ubuntu", "latest", None, False)),
    ("index.docker.io/a/b:1", (HUB, "a/b", "1", None, False)),
    ("registry-1.docker.io/a", (HUB, "library/a", "latest", None, False)),
    ("Docker.IO/a/b", (HUB, "a/b", "latest", None, False)),
    ("http://docker.io/a/b", (HUB, "a/b", "latest", None, False)),
    ("https://a/b", (HUB, "a/b", "latest", None, False)),
    ("ghcr.io/team/train:1", ("ghcr.io", "team/train", "1", None, False)),
    ("quay.io/a", ("quay.io", "a", "latest", None, False)),
    ("r.example:5000/a", ("r.example:5000", "a", "latest", None, False)),
    ("r.example:5000/a:5000", ("r.example:5000", "a", "5000", None, False)),
    ("r.example:65535/a/b", ("r.example:65535", "a/b", "latest", None, False)),
    ("R.Example/a", ("R.Example", "a", "latest", None, False)),
    ("Host/a/b", ("Host", "a/b", "latest", None, False)),
    ("host:1/a", ("host:1", "a", "latest", None, False)),
    ("host/a", (HUB, "host/a", "latest", None, False)),
    ("xn--n3h.com/a", ("xn--n3h.com", "a", "latest", None, False)),
    ("0.0.0.0/a", ("0.0.0.0", "a", "latest", None, False)),
    ("10.0.0.1:5000/a/b:c", ("10.0.0.1:5000", "a/b", "c", None, False)),
    ("http://r.example/a:b", ("r.example", "a", "b", None, True)),
    ("HTTP://r.example:80/a:b", ("r.example:80", "a", "b", None, True)),
    ("https://r.example/a", ("r.example", "a", "latest", None, False)),
    ("localhost/a", ("localhost", "a", "latest", None, True)),
    ("localhost:5000/a/b", ("localhost:5000", "a/b", "latest", None, True)),
    ("https://localhost:5000/a", ("localhost:5000", "a", "latest", None, False)),
    ("127.0.0.1/a", ("127.0.0.1", "a", "latest", None, True)),
    ("127.0.0.1:9/a", ("127.0.0.1:9", "a", "latest", None, True)),
    ("127.0.0.1.example/a", ("127.0.0.1.example", "a", "latest", None, False)),
    ("localhost.example/a", ("localhost.example", "a", "latest", None, False)),
    ("localhost:5000", (HUB, "library/localhost", "5000", None, False)),
    ("localhost", (HUB, "library/localhost", "latest", None, False)),
    ("[::1]:5000/a", ("[::1]:5000", "a", "latest", None, True)),
    ("[::1]/a:b", ("[::1]", "a", "b", None, True)),
    ("[2001:DB8::1]:5000/a/b:c", ("[2001:DB8::1]:5000", "a/b", "c", None, False)),
    (f"[fe80::2]/a@sha256:{HEX}", ("[fe80::2]", "a", None, f"sha256:{HEX}", False)),
    ("a.b", (HUB, "library/a.b", "latest", None, False)),
    ("a__b/c--d/e-f_g.h", (HUB, "a__b/c--d/e-f_g.h", "latest", None, False)),
    ("a---b", (HUB, "library/a---b", "latest", None, False)),
    ("0/1", (HUB, "0/1", "latest", None, False)),
    (f"{HEX[:63]}", (HUB, f"library/{HEX[:63]}", "latest", None, False)),
    (f"{HEX}:1", (HUB, f"library/{HEX}", "1", None, False)),
    (f"r.example/{HEX}", ("r.example", HEX, "latest", None, False)),
    (f"r.example/a/{HEX}", ("r.example", f"a/{HEX}", "latest", None, False)),
    (f"r.example/{LONG}", ("r.example", LONG, "latest", None, False)),
]  # fmt: skip

INVALID: list[tuple[str, str]] = [
    ("", "no name"),
    (" \n", "no name"),
    ("https://", "repository is missing"),
    (":1", "repository is missing"),
    ("r.example/", "repository is missing"),
    (f"@sha256:{HEX}", "repository is missing"),
    ("Ubuntu", "'Ubuntu' in the repository's name"),
    ("a/B", "'B' in the repository's name"),
    ("r.example/a/Bc:1", "'Bc' in the repository's name"),
    ("a//b", "'' in the repository's name"),
    ("/a", "'' in the repository's name"),
    ("a/b/", "'' in the repository's name"),
    ("-a/b", "'-a' in the repository's name"),
    ("a-/b", "'a-' in the repository's name"),
    ("a_/b", "'a_' in the repository's name"),
    ("a/b._c", "'b._c' in the repository's name"),
    ("a/b___c", "'b___c' in the repository's name"),
    ("a/b..c", "'b..c' in the repository's name"),
    ("a/b c", "'b c' in the repository's name"),
    ("a/ü", "'ü' in the repository's name"),
    ("a/\u0661", "in the repository's name"),
    ("$(id)/a", "'$(id)' in the repository's name"),
    ("a/../b", "'..' in the repository's name"),
    ("a/b\nc", "in the repository's name"),
    (HEX, "is an image's id"),
    ("ubuntu:", "'' is no tag"),
    ("ubuntu:.x", "'.x' is no tag"),
    ("ubuntu:-x", "'-x' is no tag"),
    ("ubuntu:a/b", "no registry"),
    ("r.example/a:b/c", "'b/c' is no tag"),
    ("ubuntu:a:b", "'a:b' is no tag"),
    ("ubuntu:ä", "'ä' is no tag"),
    ("ubuntu:" + "t" * 129, "is no tag"),
    ("ubuntu@", "'' is no digest"),
    ("ubuntu@sha256", "'sha256' is no digest"),
    ("ubuntu@sha256:abc", "'sha256:abc' is no digest: 64"),
    (f"ubuntu@sha256:{HEX.upper()}", "is no digest"),
    (f"ubuntu@sha512:{HEX}", "is no digest: 128"),
    (f"ubuntu@md5:{HEX[:32]}", "is no digest"),
    (f"ubuntu@sha256:{HEX}:1", "is no digest"),
    (f"ubuntu@sha256:{HEX}@sha256:{HEX}", "is no digest"),
    ("https://user:pw@r.example/a", "'auth' takes them"),
    ("http://alice:pw@127.0.0.1:5001/x", "'auth' takes them"),
    ("alice@r.example/a:1", "'auth' takes them"),
    ("-r.example/a", "'-r.example' is no registry"),
    ("r-.example/a", "'r-.example' is no registry"),
    ("r..example/a", "'r..example' is no registry"),
    ("r_x.example/a", "'r_x.example' is no registry"),
    ("r.example:/a", "'r.example:' is no registry"),
    ("r.example:x/a", "'r.example:x' is no registry"),
    ("r.example:65536/a", "'r.example:65536' is no registry"),
    ("r.example:1:2/a", "'r.example:1:2' is no registry"),
    ("[::1/a", "'[::1' is no registry"),
    ("[::1]x/a", "'[::1]x' is no registry"),
    ("::1/a", "'::1' is no registry"),
    ("ftp://r.example/a", "'ftp:' is no registry"),
    (f"r.example/{LONG}/a", "more than 255"),
]


def test_the_table_is_not_small() -> None:
    """The grammar has many corners."""
    assert len(VALID) + len(INVALID) >= 100


@pytest.mark.parametrize(("text", "parts"), VALID)
def test_a_valid_reference(part: Part, text: str, parts: tuple[Any, ...]) -> None:
    """It is read in parts, and its whole name is read as the same."""
    parse = part("reference").parse_reference
    reference = parse(text)
    assert tuple(reference) == parts
    again = parse(str(reference))
    assert again._replace(plain=reference.plain) == reference


@pytest.mark.parametrize(("text", "says"), INVALID)
def test_an_invalid_reference(part: Part, text: str, says: str) -> None:
    """The part that is wrong is shown."""
    with pytest.raises(ValueError) as caught:
        part("reference").parse_reference(text)
    assert says in str(caught.value)


LABEL = st.from_regex("[a-zA-Z0-9]([a-zA-Z0-9-]{0,8}[a-zA-Z0-9])?", fullmatch=True)
HOST = st.one_of(
    st.lists(LABEL, min_size=2, max_size=4).map(".".join),
    st.just("localhost"),
    st.ip_addresses(v=6).map(lambda ip: f"[{ip}]"),
)
PORT = st.one_of(st.just(""), st.integers(0, 65535).map(lambda p: f":{p}"))
WORD = st.from_regex("[a-z0-9]{1,4}", fullmatch=True)
COMPONENT = st.builds(
    lambda first, rest: first + "".join(sep + word for sep, word in rest),
    WORD,
    st.lists(st.tuples(st.sampled_from([".", "_", "__", "-", "---"]), WORD), max_size=3),
)
PATH = st.lists(COMPONENT, min_size=1, max_size=5).map("/".join)
TAG = st.none() | st.from_regex("[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}", fullmatch=True)
HASH = st.none() | st.from_regex("sha256:[0-9a-f]{64}", fullmatch=True)


@pytest.fixture(scope="module")
def parse(part: Part) -> Callable[[str], Any]:
    """The parser, for properties."""
    return part("reference").parse_reference  # type: ignore[no-any-return]


@st.composite
def references(draw: st.DrawFn) -> str:
    """A reference by the grammar: with or without host, port, tag, digest, space, scheme."""
    host = draw(st.none() | HOST)
    name = path = draw(PATH)
    if host is not None:
        name = f"{host}{draw(PORT)}/{path}"
    else:
        # A first component with a dot would be a host.
        assume("/" not in path or not re.search("[.]|^localhost$", path.partition("/")[0]))
    tag, digest = draw(TAG), draw(HASH)
    name += (f":{tag}" if tag else "") + (f"@{digest}" if digest else "")
    return draw(st.sampled_from(["", "", "http://", "HTTPS://", " ", "\n\t"])) + name


@st.composite
def mutations(draw: st.DrawFn) -> str:
    """A reference with something put in, taken out, doubled or turned to upper case."""
    text = draw(references())
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(text)))
        piece = draw(st.sampled_from([*"aA0.:/@[]-_ %~", "//", "..", "___", "sha256:", "é", "\n"]))
        end = draw(st.integers(at, min(len(text), at + 3)))
        cut = [text[:at] + piece + text[at:], text[:at] + text[end:], text[:end] + text[at:]]
        text = draw(st.sampled_from([*cut, text[:at] + text[at:end].upper() + text[end:]]))
    return text


ANCHORED = re.compile(
    r"""
    (?: (?P<domain>
          (?: (?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])
              (?:\.(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9]))*
            | \[[a-fA-F0-9:]+\] )
          (?: :(?P<port>[0-9]+) )?
        ) / )?
    (?P<path> [a-z0-9]+(?:(?:[._]|__|[-]+)[a-z0-9]+)* (?:/[a-z0-9]+(?:(?:[._]|__|[-]+)[a-z0-9]+)*)* )
    (?: :(?P<tag>[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}) )?
    (?: @(?P<digest>sha256:[0-9a-f]{64}|sha384:[0-9a-f]{96}|sha512:[0-9a-f]{128}) )?
    """,
    re.VERBOSE,
)


def expected(text: str) -> tuple[str, str, str | None, str | None] | None:
    """The grammar once more, as one anchored expression over the normalized name; None: invalid.

    The distribution project's way: the domain is split off first and put in front where there is
    none, then the whole is matched. What it does not have: space around, a scheme, names of the
    Hub in any case, and a bound for ports.
    """
    text = re.sub("^https?://", "", text.strip(), flags=re.IGNORECASE)
    if re.fullmatch("[0-9a-f]{64}", text):
        return None
    head, slash, rest = text.partition("/")
    if not slash or not ("." in head or ":" in head or head == "localhost" or head != head.lower()):
        head, rest = "docker.io", text
    if head.lower() in ("docker.io", "index.docker.io", "registry-1.docker.io"):
        head = "docker.io"
        if "/" not in re.split("[:@]", rest)[0]:
            rest = f"library/{rest}"
    found = ANCHORED.fullmatch(f"{head}/{rest}")
    if not found or found["domain"] != head or len(found["path"]) > 255:
        return None
    if int(found["port"] or 0) > 65535 or len(found["port"] or "") > 5:
        return None
    return (
        head,
        found["path"],
        found["tag"] or (None if found["digest"] else "latest"),
        found["digest"],
    )


def same(parse: Callable[[str], Any], text: str) -> bool:
    """Compare both readings; returns whether the text is valid."""
    try:
        read = parse(text)
    except ValueError:
        assert expected(text) is None
        return False
    assert tuple(read[:4]) == expected(text)
    assert parse(str(read))[:4] == read[:4]
    return True


@settings(max_examples=cases(1000))
@given(references())
def test_a_reference_is_read_as_the_grammar_says(parse: Callable[[str], Any], text: str) -> None:
    """Every reference that the grammar makes is valid, and has the parts it was made of."""
    assert same(parse, text)


@settings(max_examples=cases(500))
@given(mutations())
def test_a_mutation_is_judged_as_the_grammar_says(parse: Callable[[str], Any], text: str) -> None:
    """A reference that was damaged is valid or not as by the second formulation."""
    same(parse, text)


@settings(max_examples=cases(300))
@given(st.text() | st.text("aA0.:/@[]-_ sha256:", max_size=40))
def test_any_text_is_read_or_refused(parse: Callable[[str], Any], text: str) -> None:
    """Nothing but a ValueError escapes, and what is read is safe in a URL."""
    try:
        reference = parse(text)
    except ValueError:
        return
    assert str(reference).isascii()
    assert not set(str(reference)) & set(" \t\r\n?#%\\")


# --- challenges ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([], []),
        ([""], []),
        (["Basic"], [("basic", {})]),
        (['Basic realm="a"'], [("basic", {"realm": "a"})]),
        (['BASIC Realm = "a"'], [("basic", {"realm": "a"})]),
        (["Basic realm=a"], [("basic", {"realm": "a"})]),
        (
            ['Bearer realm="https://a/t",service="s",scope="repository:a/b:pull,push"'],
            [
                (
                    "bearer",
                    {
                        "realm": "https://a/t",
                        "service": "s",
                        "scope": "repository:a/b:pull,push",
                    },
                )
            ],
        ),
        (
            ['Newauth realm="apps", type=1, title="Login to \\"apps\\"", Basic realm="simple"'],
            [
                ("newauth", {"realm": "apps", "type": "1", "title": 'Login to "apps"'}),
                ("basic", {"realm": "simple"}),
            ],
        ),
        (["Negotiate", 'Basic realm="a"'], [("negotiate", {}), ("basic", {"realm": "a"})]),
        (
            ['Negotiate YWJj+/==, Basic realm="a"'],
            [("negotiate", {}), ("basic", {"realm": "a"})],
        ),
        (["Negotiate, Basic"], [("negotiate", {}), ("basic", {})]),
        ([' , ,Basic realm="a" , , charset="UTF-8",'], [("basic", {"realm": "a", "charset": "UTF-8"})]),
        (["Bearer realm=https://a/t,service=s"], [("bearer", {"realm": "https://a/t", "service": "s"})]),
        (['Basic realm="a", realm="b"'], [("basic", {"realm": "a"})]),
        (['Bearer realm="never closed'], [("bearer", {}), ("realm", {})]),
        (['"no scheme"'], []),
    ],
)  # fmt: skip
def test_challenges_are_read_by_the_rfc(
    part: Part, lines: list[str], expected: list[tuple[str, dict[str, str]]]
) -> None:
    """Several lines, several challenges in one, commas and quotes within quotes."""
    assert [tuple(c) for c in part("challenge").challenges(lines)] == expected


@given(
    st.lists(
        st.tuples(
            st.from_regex("[A-Za-z]{1,9}", fullmatch=True),
            st.dictionaries(
                st.from_regex("[a-z]{1,9}", fullmatch=True),
                st.text(st.characters(min_codepoint=32, max_codepoint=126)),
                max_size=4,
            ),
        ),
        max_size=4,
    )
)
def test_challenges_that_are_written_are_read_back(
    part: Part, wanted: list[tuple[str, dict[str, str]]]
) -> None:
    """Any schemes and quoted values, in one line."""

    def quoted(text: str) -> str:
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'

    line = ", ".join(
        " ".join((scheme, ", ".join(f"{k}={quoted(v)}" for k, v in values.items()))).strip()
        for scheme, values in wanted
    )
    read = part("challenge").challenges([line])
    assert read == [(scheme.lower(), values) for scheme, values in wanted]


@given(st.lists(st.text('Bearer realm=",\\ ()é')))
def test_any_header_is_survived(part: Part, lines: list[str]) -> None:
    """Garbage is no error."""
    part("challenge").challenges(lines)
