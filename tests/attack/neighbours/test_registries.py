"""Registries that want a job's login, or send pairun where it must not go."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.modules.image_check.conftest import (
    Asking,
    Server,
    login,
    with_token,
)
from tests.webserver import Answer

METADATA = ["169.254.169.254", "0xa9fea9fe", "2852039166", "169.254.43518", "[::ffff:169.254.169.254]", "[fe80::1]"]  # fmt: skip


def challenge(realm: str) -> Answer:
    """A request for a login, with a token service."""
    return Answer(401, {"WWW-Authenticate": f'Bearer realm="{realm}",service="s"'})


def test_a_realm_on_another_host_never_gets_the_login(
    registry: Server, elsewhere: Server, ask: Callable[..., Asking]
) -> None:
    """It gets no request at all; nobody knows then whether the image exists."""
    host = elsewhere.host.replace("127.0.0.1", "localhost")
    registry.behaviour = elsewhere.behaviour = with_token(f"http://{host}/token")
    asking = ask(f"{registry.host}/team/image", login(registry.host))
    assert "a token service of another domain" in asking.unknown
    assert elsewhere.asked == []


def test_a_realm_on_another_host_serves_public_images(
    registry: Server, elsewhere: Server, ask: Callable[..., Asking]
) -> None:
    """Without a login there is nothing to lose, so the token service is asked."""
    host = elsewhere.host.replace("127.0.0.1", "localhost")
    registry.behaviour = elsewhere.behaviour = with_token(f"http://{host}/token", anonymous=True)
    assert "exists" in ask(f"{registry.host}/team/image").message
    assert [asked.authorization for asked in elsewhere.asked] == [None]


@pytest.mark.parametrize("host", METADATA)
@pytest.mark.parametrize("with_login", [True, False])
def test_a_realm_at_the_metadata_service(
    registry: Server, ask: Callable[..., Asking], host: str, *, with_login: bool
) -> None:
    """No spelling of a link-local address is asked for a token."""
    registry.behaviour = lambda _: challenge(f"http://{host}/latest/meta-data")
    asking = ask(f"{registry.host}/a", login(registry.host) if with_login else None)
    assert "names an unsafe token service" in asking.unknown


@pytest.mark.parametrize(
    "target",
    [*(f"http://{host}/latest" for host in METADATA), "file:///etc/passwd", "ftp://a/"],
)
def test_a_redirect_to_where_it_must_not_lead(
    registry: Server, ask: Callable[..., Asking], target: str
) -> None:
    """A redirect to the metadata service, to a file, or to another protocol is not followed."""
    registry.behaviour = lambda _: Answer(307, {"Location": target})
    assert "redirects to an invalid address" in ask(f"{registry.host}/a").unknown


def test_a_token_without_end(registry: Server, ask: Callable[..., Asking]) -> None:
    """A token service's answer is read up to 4 MiB; bodies without a length are in net/test_session.py."""
    inner = with_token(f"http://{registry.host}/token")
    registry.behaviour = lambda asked: (
        Answer(200, {}, b'{"token": "' + b"x" * (5 << 20))
        if asked.path == "/token"
        else inner(asked)
    )
    assert "is larger than" in ask(f"{registry.host}/a", login(registry.host)).unknown


def test_retry_after_of_a_year(registry: Server, ask: Callable[..., Asking]) -> None:
    """The request is passed on; the executor waits an hour at most (executor/test_retry.py)."""
    registry.behaviour = lambda _: Answer(429, {"Retry-After": str(365 * 86400)})
    failure: Any = ask(f"{registry.host}/a").failure
    assert failure.retry_after_s == 365 * 86400
