"""Follows the redirects of a download, and checks their targets."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple
from urllib.parse import urljoin, urlsplit

from pairun.base.linklocal import is_link_local
from pairun.module import Fetched, Permanent, Secret
from pairun.net.session import Deadline, Session

_MAX_REDIRECTS = 10


@contextlib.contextmanager
def follow(
    url: str,
    headers: Mapping[str, str | Secret],
    *,
    conditions: Mapping[str, str],
    env: Mapping[str, str],
    limit_s: Callable[[], float],
    may_downgrade: bool,
) -> Iterator[tuple[Session, Fetched]]:
    """Send a GET request and follow redirects; yields the session and the response's head.

    Args:
        url: the address.
        headers: the task's headers; not sent to other hosts.
        conditions: further headers, sent to every server.
        env: the task's environment, for proxies and authorities.
        limit_s: timeout of one server's response, in seconds.
        may_downgrade: whether a redirect may lead from https to http.

    Raises:
        Failure: a server does not respond, or a redirect has no usable address.
    """
    first = urlsplit(url).hostname or "the server"
    for _ in range(_MAX_REDIRECTS + 1):
        deadline = Deadline(limit_s())
        with Session.to(url, env) as session:
            head = session.ask("GET", url, deadline, {**headers, **conditions})
            if head.status not in (301, 302, 303, 307, 308):
                yield session, head
                return
        target = _target(url, head, session.where, may_downgrade=may_downgrade)
        if not may_share_headers(url, target):
            # Permanently: a second server may redirect back to the first one.
            headers = {}
        url = target
    raise Permanent(f"{first} redirects more than {_MAX_REDIRECTS} times", fault="platform")


def _target(url: str, head: Fetched, where: str, *, may_downgrade: bool) -> str:
    location = head.header("location")
    try:
        target = urljoin(url, (location or "").strip())
        # Encodes spaces and umlauts byte by byte, as curl does.
        target = re.sub(
            r"[^!-~]", lambda m: "".join(f"%{b:02X}" for b in m[0].encode("latin-1", "replace")),
            target,
        )  # fmt: skip
        scheme = Origin.of(target).scheme
    except ValueError:
        location, scheme = None, ""
    if not location or scheme not in ("http", "https"):
        raise Permanent(
            f"{where} redirects to an invalid address (status {head.status})", fault="platform"
        )
    if is_link_local(urlsplit(target).hostname or ""):
        raise Permanent(
            f"{where} redirects to an address of this machine's link, which pairun does not follow",
            fault="platform",
            hint="clouds serve credentials there; use the final address if this is intended",
        )
    if urlsplit(url).scheme == "https" and scheme == "http" and not may_downgrade:
        raise Permanent(
            f"{where} redirects from https to http, where others can change the content",
            fault="platform",
            hint="give its sha256, or the final address",
        )
    return target


class Origin(NamedTuple):
    """The origin of an address: scheme, host and port (RFC 6454, 4)."""

    scheme: str
    host: str
    port: int

    @classmethod
    def of(cls, url: str) -> Origin:
        """The origin of an address.

        Raises:
            ValueError: the address is malformed.
        """
        parts = urlsplit(url)
        default = {"http": 80, "https": 443}.get(parts.scheme, 0)
        return cls(parts.scheme, parts.hostname or "", parts.port or default)


def may_share_headers(url: str, target: str) -> bool:
    """Whether headers for one address may be sent to another after a redirect.

    Allowed are the same origin, or the same host with TLS, each on its default port.
    """
    one, other = Origin.of(url), Origin.of(target)
    return one == other or (
        one == Origin("http", other.host, 80) and other == Origin("https", one.host, 443)
    )
