"""Addresses of servers: which are valid, how people name a server, which two are the same."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

from pairun.module import Permanent

_HINT = "http:// or https://, a host, a path; credentials go into headers"
_PORTS = {"http": 80, "https": 443}


def parse_address(url: str) -> SplitResult:
    """Parse an address; no message repeats the address.

    Raises:
        Permanent: it is malformed, contains credentials, or is neither http nor https.
    """
    if not re.fullmatch("[!-~]+", url):
        raise Permanent("the address has characters outside printable ASCII", hint=_HINT)
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises if it is not a number
    except ValueError as e:
        raise Permanent("the address is malformed", hint=_HINT) from e
    if parts.scheme not in _PORTS or not parts.hostname or "@" in parts.netloc:
        raise Permanent("the address is not a plain http or https address", hint=_HINT)
    return parts


def server_name(address: SplitResult) -> str:
    """The host, with the port if given, for people."""
    host = address.hostname or ""
    shown = f"[{host}]" if ":" in host else host
    return f"{shown}:{address.port}" if address.port is not None else shown


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
        return cls(parts.scheme, parts.hostname or "", parts.port or _PORTS.get(parts.scheme, 0))


def may_share_headers(url: str, target: str) -> bool:
    """Whether headers for one address may be sent to another after a redirect.

    Allowed are the same origin, or the same host with TLS, each on its default port.
    """
    one, other = Origin.of(url), Origin.of(target)
    return one == other or (
        one == Origin("http", other.host, 80) and other == Origin("https", one.host, 443)
    )
