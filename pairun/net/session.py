"""A `requests` session with the task's settings, which another thread can abort.

It turns off what `requests` does by default: read the process's proxies, authorities and
``.netrc``; follow redirects; keep cookies; verify with the authorities of `certifi`.
"""

from __future__ import annotations

import contextlib
import functools
import socket
import ssl
from collections.abc import Mapping
from http.cookiejar import DefaultCookiePolicy
from typing import Any

from pairun.net.address import parse_address, server_name
from pairun.net.authorities import tls_context
from pairun.net.package import requests, urllib3
from pairun.net.proxies import Proxy, proxy_for


class Session(requests.Session):
    """A session for one server.

    Args:
        where: the server's name for people.
        tls: verifies the server; None for plain HTTP.
        proxy: the proxy, or None.

    Attributes:
        connections: how many connections were made.
        is_aborted: whether it is aborted, so that requests fail.
    """

    def __init__(
        self, where: str, tls: ssl.SSLContext | None = None, proxy: Proxy | None = None
    ) -> None:
        super().__init__()
        self.where = where
        self.connections = 0
        self.is_aborted = False
        self._socket: socket.socket | None = None
        self.trust_env = False
        self.headers.clear()
        self.cookies.set_policy(DefaultCookiePolicy(allowed_domains=()))
        if proxy is not None:
            self.proxies = {"http": proxy.url, "https": proxy.url}
        adapter = _Adapter(self, tls, proxy)
        for prefix in list(self.adapters):
            self.mount(prefix, adapter)

    @classmethod
    def to(cls, url: str, env: Mapping[str, str]) -> Session:
        """Make a session for the server of an address.

        Args:
            url: the address.
            env: the task's environment, for proxies and certificate authorities.

        Raises:
            Permanent: the address is invalid, or the environment has invalid settings.
        """
        address = parse_address(url)
        proxy = proxy_for(address, env)
        where = server_name(address) + (f" through the proxy {proxy.host}" if proxy else "")
        return cls(where, tls_context(env) if address.scheme == "https" else None, proxy)

    def get_redirect_target(self, resp: requests.Response) -> str | None:
        """Return None: the caller decides whether to follow a redirect."""
        return None

    def note_connection(self, sock: socket.socket) -> None:
        """Register the socket of a new connection, so that `abort` can close it.

        Raises:
            ConnectionAbortedError: the session is already aborted.
        """
        self.connections += 1
        self._socket = sock
        if self.is_aborted:
            raise ConnectionAbortedError(
                "the time limit expired before the connection was established"
            )

    def abort(self) -> None:
        """Abort the request in another thread, which then closes its connection."""
        self.is_aborted = True
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)


class _Adapter(requests.adapters.HTTPAdapter):
    """Makes connections with the session's own TLS context and proxy."""

    def __init__(self, session: Session, tls: ssl.SSLContext | None, proxy: Proxy | None) -> None:
        self._session = session
        self._tls: dict[str, Any] = {"ssl_context": tls} if tls is not None else {}
        self._proxy = proxy
        super().__init__()

    def init_poolmanager(
        self, connections: int, maxsize: int, block: bool = False, **kwargs: Any
    ) -> None:
        """Make the connection pools, with the session's TLS context."""
        super().init_poolmanager(connections, maxsize, block, **self._tls, **kwargs)

    def proxy_manager_for(self, proxy: str, **kwargs: Any) -> Any:
        """Return the connection pools through the proxy, with the session's TLS context."""
        return super().proxy_manager_for(proxy, **self._tls, **kwargs)

    def proxy_headers(self, proxy: str) -> dict[str, str]:
        """Return the proxy's login; its address, which errors repeat, does not contain it."""
        return self._proxy.headers if self._proxy is not None else {}

    def cert_verify(self, *args: Any) -> None:
        """Do nothing: the session's TLS context verifies."""

    def get_connection_with_tls_context(self, *args: Any, **kwargs: Any) -> Any:
        """Return the pool for a request; its connections register their sockets."""
        pool: Any = super().get_connection_with_tls_context(*args, **kwargs)
        kind = _SecureConnection if pool.scheme == "https" else _PlainConnection
        pool.ConnectionCls = functools.partial(kind, session=self._session)
        return pool


class _PlainConnection(urllib3.connection.HTTPConnection):
    def __init__(self, *args: Any, session: Session, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._session = session

    def connect(self) -> None:
        super().connect()
        self._session.note_connection(self.sock)


class _SecureConnection(urllib3.connection.HTTPSConnection):
    def __init__(self, *args: Any, session: Session, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._session = session

    def connect(self) -> None:
        super().connect()
        self._session.note_connection(self.sock)
