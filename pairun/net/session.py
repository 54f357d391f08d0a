"""Requests to a server, sent by a child process, so that a time limit holds whatever happens.

No timeout of a library limits a name lookup, several addresses in turn, or a server that sends a
byte now and then.
"""

from __future__ import annotations

import re
import ssl
import time
from collections.abc import Mapping
from typing import Any, NamedTuple, Self
from urllib.parse import SplitResult, urlsplit

import requests

from pairun.module import Failure, Fetched, Permanent, Secret, Transient, reveal
from pairun.net.authorities import tls_context
from pairun.net.boundedcall import ForkedProcess, ProcessChannel
from pairun.net.failures import failure_of, timed_out
from pairun.net.proxies import Proxy, proxy_for

_PIECE = 256 * 1024
_HINT = "http:// or https://, a host, a path; credentials go into headers"


class Deadline:
    """A point in time; ``limit_s`` is the time limit that it was made from."""

    def __init__(self, limit_s: float) -> None:
        self.limit_s = limit_s
        self._end = time.monotonic() + limit_s

    def left_s(self) -> float:
        """The seconds until the deadline."""
        return max(0.0, self._end - time.monotonic())


class Session:
    """A server, and the child process that sends requests to it over one persistent connection.

    Call `ask`, then `read` or `body` to the end. After a failure, and in the middle of a response,
    a session can only be closed.

    Args:
        tls: verifies the server; None for plain HTTP.
        proxy: the proxy, or None.

    Attributes:
        reconnected: whether the latest request needed a new connection because the old one broke.
    """

    def __init__(
        self, where: str, tls: ssl.SSLContext | None = None, proxy: Proxy | None = None
    ) -> None:
        self.where = where
        self.reconnected = False
        self._tls, self._proxy = tls, proxy
        self._child: ForkedProcess | None = None

    @classmethod
    def to(cls, url: str, env: Mapping[str, str]) -> Session:
        """Make a session for the server of an address.

        Args:
            env: the task's environment, for proxies and certificate authorities.

        Raises:
            Permanent: the address is invalid, or the environment has invalid settings.
        """
        address = parse_address(url)
        proxy = proxy_for(address, env)
        host = address.hostname or ""
        where = f"[{host}]" if ":" in host else host
        where += f":{address.port}" if address.port is not None else ""
        where += f" through the proxy {proxy.host}" if proxy else ""
        return cls(where, tls_context(env) if address.scheme == "https" else None, proxy)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ask(
        self,
        method: str,
        url: str,
        deadline: Deadline,
        headers: Mapping[str, str | Secret],
        data: bytes | None = None,
    ) -> Fetched:
        """Send a request; returns the status and the headers. Does not follow redirects.

        Args:
            method: the HTTP method.
            url: the address, on the session's server.
            deadline: the limit for everything.
            headers: further headers.
            data: the request's body.

        Raises:
            Failure: there is no response; see `pairun.net.failures`.
        """
        sent: dict[str, str | bytes] = {"User-Agent": "pairun", "Accept-Encoding": "identity"}
        for name, value in headers.items():
            line = reveal(value).encode("utf-8", "surrogateescape")
            if re.search(rb"[\r\n\0]", line):
                raise Permanent(f"the header {name} contains a line break")
            sent[name] = line
        left_s = deadline.left_s()
        if not left_s:
            raise timed_out(self.where, deadline.limit_s)
        try:
            self._child = self._child or ForkedProcess(self._serve, ())
            self._child.channel.send(_Question(method, url, sent, data, left_s))
        except OSError as e:
            raise failure_of(e, self.where, left_s) from None
        head, self.reconnected = self._next(deadline)
        assert isinstance(head, Fetched)
        return head

    def read(self, deadline: Deadline) -> bytes:
        """The next piece of the body, as it was sent; empty at its end.

        Raises:
            Transient: the connection broke before the end of the body.
            TimedOut: no byte came in time.
        """
        piece = self._next(deadline)
        assert isinstance(piece, bytes)
        return piece

    def body(self, deadline: Deadline, max_bytes: int) -> bytes:
        """The whole body.

        Raises:
            Failure: as for `read`.
            Permanent: it is larger than ``max_bytes``.
        """
        body = bytearray()
        while piece := self.read(deadline):
            body += piece
            if len(body) > max_bytes:
                raise too_large(self.where, max_bytes)
        return bytes(body)

    def close(self) -> None:
        """End the process, and with it the connection."""
        child, self._child = self._child, None
        if child is not None:
            child.end()

    def _next(self, deadline: Deadline) -> Any:
        assert self._child is not None
        try:
            item = self._child.channel.receive(deadline.left_s())
        except TimeoutError:
            raise timed_out(self.where, deadline.limit_s) from None
        except (EOFError, OSError):
            message = f"the process that sent the request to {self.where} was killed"
            raise Transient(message, fault="platform") from None
        if isinstance(item, Failure):
            raise item
        return item

    # --- in the child process --------------------------------------------------------------------

    def _serve(self, channel: ProcessChannel) -> None:
        """Answer questions until the program ends this process."""
        adapter = _Adapter(self._tls, self._proxy)
        connection: Any = None
        while True:
            question = channel.receive()
            broke = connection is not None and not connection.is_connected
            try:
                connection = _send(adapter, question, channel, broke=broke)
            except Exception as e:  # noqa: BLE001 - for the program
                channel.send(failure_of(e, self.where, question.left_s))


class _Question(NamedTuple):
    """A request; the process that sends it limits each step, too."""

    method: str
    url: str
    headers: dict[str, str | bytes]
    data: bytes | None
    left_s: float


def _send(adapter: _Adapter, question: _Question, channel: ProcessChannel, *, broke: bool) -> Any:
    """Send a request, and its response to the program; returns the connection."""
    method, url, headers, data, left_s = question
    try:
        request = requests.Request(method, url, headers=headers, data=data).prepare()
    except requests.exceptions.InvalidHeader:
        raise Permanent("a header begins with a space, or its name is invalid") from None
    # The program gives up first.
    timeout, proxies = left_s + 1, adapter.proxies
    with adapter.send(request, stream=True, timeout=timeout, proxies=proxies) as response:
        raw: Any = response.raw
        connection = raw.connection
        channel.send((Fetched(response.status_code, _headers(raw.headers), b""), broke))
        while piece := raw.read1(_PIECE, decode_content=False):
            channel.send(piece)
    channel.send(b"")
    return connection


class _Adapter(requests.adapters.HTTPAdapter):
    """Makes connections with the session's own TLS context and proxy.

    An adapter reads no proxies and logins of this process, keeps no cookies, and follows no
    redirects.
    """

    def __init__(self, tls: ssl.SSLContext | None, proxy: Proxy | None) -> None:
        self._tls: dict[str, Any] = {"ssl_context": tls} if tls is not None else {}
        self._login = proxy.headers if proxy is not None else {}
        self.proxies = {"http": proxy.url, "https": proxy.url} if proxy is not None else {}
        super().__init__()

    def init_poolmanager(
        self, connections: int, maxsize: int, block: bool = False, **kwargs: Any
    ) -> None:
        """Make the connection pools, with the session's TLS context."""
        super().init_poolmanager(connections, maxsize, block, **kwargs, **self._tls)

    def proxy_manager_for(self, proxy: str, **kwargs: Any) -> Any:
        """Return the connection pools through the proxy, with the session's TLS context."""
        return super().proxy_manager_for(proxy, **kwargs, **self._tls)

    def proxy_headers(self, proxy: str) -> dict[str, str]:
        """Return the proxy's login; its address, which errors repeat, does not contain it."""
        return self._login

    def cert_verify(self, *args: Any) -> None:
        """Do nothing: the session's TLS context verifies."""


def fetch(
    url: str,
    env: Mapping[str, str],
    *,
    method: str,
    headers: Mapping[str, str | Secret] | None,
    limit_s: float,
    max_bytes: int = 1024 * 1024,
    data: bytes | None = None,
) -> Fetched:
    """Send one request; does not follow redirects.

    Args:
        url: an http or https address without credentials.
        env: the task's environment; see `pairun.net.proxies` and `pairun.net.authorities`.
        method: ``GET`` or ``HEAD``; ``POST`` with ``data``.
        headers: further headers.
        limit_s: seconds for everything: name, connection, TLS, response.
        max_bytes: the largest body.
        data: the request's body.

    Raises:
        Transient: there was no response, or none that is HTTP.
        TimedOut: the time limit was exceeded.
        Permanent: the certificate or the address is invalid, or the body is too large.
    """
    if method not in (("GET", "HEAD") if data is None else ("POST",)):
        raise ValueError(f"fetch only reads: it supports GET and HEAD, not {method}")
    deadline = Deadline(limit_s)
    with Session.to(url, env) as session:
        head = session.ask(method, url, deadline, headers or {}, data)
        return head._replace(body=session.body(deadline, max_bytes))


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
    if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
        raise Permanent("the address is not a plain http or https address", hint=_HINT)
    return parts


def may_share_headers(url: str, target: str) -> bool:
    """Whether headers for one address may be sent to another after a redirect.

    Allowed are the same origin, or the same host with TLS, each on its default port.
    """
    return not requests.Session().should_strip_auth(url, target)


def too_large(where: str, max_bytes: int) -> Permanent:
    """The failure of a body that is larger than allowed."""
    return Permanent(f"{where}: the answer is larger than {max_bytes} bytes", fault="platform")


def _headers(items: Any) -> dict[str, tuple[str, ...]]:
    """The values of each header, by lower-case name, each on one line."""
    return {
        name.lower(): tuple(re.sub(r"[ \t]*[\r\n]+[ \t]*", " ", v) for v in items.getlist(name))
        for name in items
    }
