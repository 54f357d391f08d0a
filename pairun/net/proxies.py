"""Selects a proxy by the variables that curl and Go read."""

from __future__ import annotations

import base64
import contextlib
import ipaddress
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import proxy_bypass_environment  # type: ignore[attr-defined]

from pairun.module import Permanent


class Proxy(NamedTuple):
    """A proxy server; ``headers`` contain its login and are sent only to it."""

    host: str
    port: int
    headers: dict[str, str]

    @property
    def url(self) -> str:
        """Its address, without the login."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"


def proxy_for(address: SplitResult, env: Mapping[str, str]) -> Proxy | None:
    """The proxy for an address, or None; requests to this machine never use one.

    Args:
        env: ``HTTPS_PROXY``, ``HTTP_PROXY`` and ``NO_PROXY``; a lower-case name wins.

    Raises:
        Permanent: the variable is not a valid proxy.
    """
    name = f"{address.scheme}_proxy"
    text = env.get(name) or env.get(name.upper())
    if not text or _is_direct(address, env.get("no_proxy") or env.get("NO_PROXY") or ""):
        return None
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host or parts.scheme != "http":
        # The text is not shown: it may contain a password.
        hint = "http://HOST:PORT, also for https addresses"
        raise Permanent(f"{name.upper()} is not a usable proxy", fault="platform", hint=hint)
    headers = {}
    if parts.username is not None:
        login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        headers["Proxy-Authorization"] = "Basic " + base64.b64encode(login.encode()).decode()
    return Proxy(host, port or 80, headers)


def _is_direct(address: SplitResult, no_proxy: str) -> bool:
    """Whether an address needs no proxy: hosts, domains, networks, ``*``."""
    host, entries = address.hostname or "", [e.strip() for e in no_proxy.split(",")]
    with contextlib.suppress(ValueError):
        ip = ipaddress.ip_address(host)
        if ip.is_loopback:
            return True
        for entry in entries:
            with contextlib.suppress(ValueError):
                if ip in ipaddress.ip_network(entry, strict=False):
                    return True
    names = ",".join(entry.removeprefix("*.") for entry in entries)
    direct = proxy_bypass_environment(address.netloc, {"no": names})
    return host == "localhost" or "*" in entries or bool(direct)
