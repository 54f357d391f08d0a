"""What the module asks a registry and its token service, and where a login goes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from pairun.module import (
    CheckModule,
    Fetched,
    Permanent,
    Skip,
    Transient,
)
from tests.modules.image_check.conftest import (
    BASIC,
    DIGEST,
    OCI,
    PASSWORD,
    TOKEN,
    USER,
    Asking,
    Server,
    always,
    basic_only,
    fetches,
    login,
    open_to_all,
    refused,
    with_token,
)
from tests.webserver import Answer, Asked

if TYPE_CHECKING:
    from tests.modules.conftest import Harness


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
