"""One HTTP request, with the standard library alone: verified TLS, proxies, a limit that holds.

A thread does the request and the caller waits for it no longer than it may, because no timeout of a
socket bounds the look-up of a name, a server that sends a byte now and then, or several addresses
that are tried in turn.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import ipaddress
import queue
import re
import socket
import ssl
import threading
from collections.abc import Mapping
from typing import NamedTuple, Self
from urllib.parse import SplitResult, unquote, urlsplit

from pairun.base.system import BUNDLED
from pairun.module import (
    Failure,
    Fetched,
    Permanent,
    Secret,
    TimedOut,
    Transient,
    format_duration,
    reveal,
)
from pairun.net.authorities import find_authorities

_PIECE = 256 * 1024
_AHEAD = 8


def fetch(
    url: str,
    *,
    method: str,
    headers: Mapping[str, str | Secret],
    limit_s: float,
    max_bytes: int,
    env: Mapping[str, str],
    data: bytes | None = None,
) -> Fetched:
    """Ask a server for something, once; a redirection is an answer like any other.

    Args:
        url: an http or https address without credentials.
        method: ``GET`` or ``HEAD``; ``POST`` with ``data``.
        headers: further headers.
        limit_s: seconds for everything: name, connection, TLS, answer.
        max_bytes: the largest body.
        env: ``HTTPS_PROXY``, ``HTTP_PROXY`` and ``NO_PROXY`` (in either case) name proxies;
            ``SSL_CERT_FILE`` and ``SSL_CERT_DIR`` certificate authorities in place of the image's.
        data: what is sent along.

    Raises:
        Transient: there was no answer, or none that is HTTP.
        TimedOut: the time was up.
        Permanent: the certificate is not valid, the address cannot be asked, the body is too large.
    """
    if method not in (("GET", "HEAD") if data is None else ("POST",)):
        raise ValueError(f"fetch reads, so it knows GET and HEAD, not {method}")
    ready = _prepare(url, headers, env, limit_s)
    request = _Request(ready.connection, method, ready.target, ready.headers, max_bytes, data)
    answer = request.answer(limit_s)
    if isinstance(answer, Fetched):
        return answer
    raise _failure(answer, ready.where, limit_s) from None


class _Ready(NamedTuple):
    """A request that is not made yet; ``where`` names the server for people."""

    connection: http.client.HTTPConnection
    target: str
    headers: dict[str, bytes]
    where: str


def _prepare(
    url: str, headers: Mapping[str, str | Secret], env: Mapping[str, str], timeout_s: float
) -> _Ready:
    address = _address(url)
    sent = {name: _header_value(name, value) for name, value in headers.items()}
    proxy = _proxy(address, env)
    connection = _connection(address, proxy, timeout_s, env)
    target = address._replace(scheme="", netloc="", fragment="", path=address.path or "/").geturl()
    if proxy is not None and address.scheme == "http":
        target = address._replace(fragment="").geturl()
        sent |= {name: value.encode() for name, value in proxy.headers.items()}
    via = f" through the proxy {proxy.host}" if proxy else ""
    return _Ready(connection, target, sent, _server(address) + via)


class _Request:
    """A request in a thread of its own."""

    def __init__(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        target: str,
        headers: Mapping[str, bytes],
        max_bytes: int,
        data: bytes | None,
    ) -> None:
        self._data = data
        self._connection = connection
        self._method = method
        self._target = target
        self._headers = headers
        self._max_bytes = max_bytes
        self._socket: socket.socket | None = None
        self._answers: queue.SimpleQueue[Fetched | Exception] = queue.SimpleQueue()

    def answer(self, limit_s: float) -> Fetched | Exception:
        """The answer, or why there is none."""
        if limit_s <= 0:
            return TimeoutError()
        threading.Thread(target=self._work, daemon=True).start()
        try:
            return self._answers.get(timeout=limit_s)
        except queue.Empty:
            if self._socket is not None:
                # Wakes the thread, which then closes it.
                with contextlib.suppress(OSError):
                    self._socket.shutdown(socket.SHUT_RDWR)
            return TimeoutError()

    def _work(self) -> None:
        answer: Fetched | Exception
        try:
            answer = self._ask()
        except Exception as e:  # noqa: BLE001 - for the thread that waits
            answer = e
        finally:
            self._connection.close()
        self._answers.put(answer)

    def _ask(self) -> Fetched:
        connection = self._connection
        connection.connect()
        self._socket = connection.sock
        connection.putrequest(self._method, self._target, skip_accept_encoding=True)
        for name, value in {"User-Agent": b"pairun", **self._headers}.items():
            connection.putheader(name, value)
        if self._data is not None:
            connection.putheader("Content-Length", str(len(self._data)))
        connection.endheaders(self._data)
        with connection.getresponse() as response:
            # One byte more than allowed shows that there is more.
            body = response.read(self._max_bytes + 1)
            if len(body) > self._max_bytes:
                raise Permanent(
                    f"the answer is larger than {self._max_bytes} bytes", fault="platform"
                )
            if response.length and self._method != "HEAD":
                raise http.client.IncompleteRead(body, response.length)
            return Fetched(response.status, _headers(response), body)


def _ended_early() -> OSError:
    return ConnectionResetError("it ended before the answer did")


def _headers(response: http.client.HTTPResponse) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for name, text in response.getheaders():
        line = re.sub(r"[ \t]*[\r\n]+[ \t]*", " ", text)
        found[name.lower()] = (*found.get(name.lower(), ()), line)
    return found


class Stream:
    """A GET whose body comes in pieces, read ahead by a thread: `head` once, then `read`.

    Args:
        url: an http or https address without credentials.
        headers: further headers.
        env: as in `fetch`.
        timeout_s: seconds that one step of the connection may take.

    Raises:
        Permanent: the address cannot be asked.
    """

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str | Secret],
        env: Mapping[str, str],
        timeout_s: float,
    ) -> None:
        self._ready = _prepare(url, headers, env, timeout_s)
        self._pieces: queue.Queue[Fetched | bytes | Exception] = queue.Queue(_AHEAD)
        self._given_up = threading.Event()
        self._socket: socket.socket | None = None
        self.where = self._ready.where

    def __enter__(self) -> Self:
        threading.Thread(target=self._work, daemon=True).start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._given_up.set()
        if self._socket is not None:
            # Wakes the thread, which then closes it.
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def head(self, limit_s: float) -> Fetched:
        """Status and headers; the body is still to come.

        Raises:
            Failure: as `fetch`.
        """
        head = self._next(limit_s)
        assert isinstance(head, Fetched)
        return head

    def read(self, limit_s: float) -> bytes:
        """The next piece of the body; nothing at its end.

        Raises:
            Transient: the connection broke before the end of the body.
            TimedOut: no byte came in the time.
        """
        piece = self._next(limit_s)
        assert isinstance(piece, bytes)
        return piece

    def _next(self, limit_s: float) -> Fetched | bytes:
        try:
            item = self._pieces.get(timeout=max(0.0, limit_s))
        except queue.Empty:
            item = TimeoutError()
        if isinstance(item, Exception):
            raise _failure(item, self.where, limit_s) from None
        return item

    def _work(self) -> None:
        try:
            self._ask()
        except Exception as e:  # noqa: BLE001 - for the thread that waits
            self._put(e)
        finally:
            self._ready.connection.close()

    def _ask(self) -> None:
        connection, target, headers, _ = self._ready
        connection.connect()
        self._socket = connection.sock
        connection.putrequest("GET", target, skip_accept_encoding=True)
        for name, value in {"User-Agent": b"pairun", **headers}.items():
            connection.putheader(name, value)
        connection.endheaders()
        with connection.getresponse() as response:
            self._put(Fetched(response.status, _headers(response), b""))
            while not self._given_up.is_set():
                try:
                    piece = response.read1(_PIECE)
                except http.client.IncompleteRead:
                    raise _ended_early() from None
                if not piece and response.length:
                    raise _ended_early()
                self._put(piece)
                if not piece:
                    return

    def _put(self, item: Fetched | bytes | Exception) -> None:
        while not self._given_up.is_set():
            with contextlib.suppress(queue.Full):
                self._pieces.put(item, timeout=0.5)
                return


def _failure(error: Exception, where: str, limit_s: float) -> Failure:
    """What went wrong, as a failure; no text of ours holds the path, the query or a header."""
    if isinstance(error, Permanent):
        return Permanent(f"{where}: {error.message}", fault=error.fault, hint=error.hint)
    if isinstance(error, TimeoutError):
        waited = format_duration(max(0.0, limit_s))
        return TimedOut(f"{where} did not answer within {waited}", fault="platform")
    if isinstance(error, ssl.SSLCertVerificationError):
        return Permanent(
            f"the certificate of {where} is not valid here: {error.verify_message}",
            fault="platform",
            hint="the container needs the authority that signed it; SSL_CERT_FILE may name one",
        )
    if isinstance(error, socket.gaierror):
        return Transient(f"the name of {where} was not found: {error.strerror}", fault="platform")
    if isinstance(error, UnicodeError):
        return Permanent(f"{where} is no name of a host", hint="check the address")
    if isinstance(error, OSError):
        reason = getattr(error, "reason", None) or error.strerror or str(error) or "it broke off"
        return Transient(f"the connection to {where} failed: {reason}", fault="platform")
    if isinstance(error, http.client.HTTPException):
        return Transient(
            f"{where} broke off, or answered what is no HTTP ({type(error).__name__})",
            fault="platform",
        )
    raise error


# --- the address -----------------------------------------------------------------------------------


def _address(url: str) -> SplitResult:
    """The parts of an address.

    Raises:
        Permanent: it is none that can be asked.
    """
    hint = "http:// or https://, a host, a path; credentials go into headers"
    if not re.fullmatch("[!-~]+", url):
        raise Permanent("the address to ask is not one of printable ASCII", hint=hint)
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises for what is no number
    except ValueError as e:
        raise Permanent("the address to ask is malformed", hint=hint) from e
    if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
        raise Permanent("the address to ask is no plain http or https address", hint=hint)
    return parts


def _server(address: SplitResult) -> str:
    """Host and port for people."""
    host = address.hostname or ""
    shown = f"[{host}]" if ":" in host else host
    return f"{shown}:{address.port}" if address.port is not None else shown


def _header_value(name: str, value: str | Secret) -> bytes:
    """The bytes of a header's value; http.client's own complaint would show the value."""
    data = reveal(value).encode("utf-8", "surrogateescape")
    if re.search(rb"[\r\n\0]", data):
        raise Permanent(f"the header {name} would hold a line break")
    return data


# --- connections and proxies -----------------------------------------------------------------------


class _Proxy(NamedTuple):
    """A server that asks for us."""

    host: str
    port: int
    headers: dict[str, str]


def _connection(
    address: SplitResult, proxy: _Proxy | None, limit_s: float, env: Mapping[str, str]
) -> http.client.HTTPConnection:
    """A connection that is not made yet."""
    host = address.hostname or ""
    port = address.port or (443 if address.scheme == "https" else 80)
    to_host, to_port = (proxy.host, proxy.port) if proxy else (host, port)
    timeout = max(limit_s, 0.001)
    if address.scheme == "http":
        return http.client.HTTPConnection(to_host, to_port, timeout=timeout)
    secure = http.client.HTTPSConnection(to_host, to_port, timeout=timeout, context=_tls(env))
    if proxy is not None:
        secure.set_tunnel(host, port, proxy.headers)
    return secure


def _tls(env: Mapping[str, str]) -> ssl.SSLContext:
    file, directory = env.get("SSL_CERT_FILE") or None, env.get("SSL_CERT_DIR") or None
    if BUNDLED and not (file or directory):
        file = find_authorities()
    try:
        return ssl.create_default_context(cafile=file, capath=directory)
    except OSError as e:
        raise Permanent(
            f"the certificate authorities in {file or directory} cannot be read: "
            f"{e.strerror or type(e).__name__}",
            fault="platform",
            hint="SSL_CERT_FILE and SSL_CERT_DIR name them",
        ) from e


def _proxy(address: SplitResult, env: Mapping[str, str]) -> _Proxy | None:
    """The proxy for an address, by the variables that curl and Go read; never for this machine."""
    name = f"{address.scheme}_proxy"
    text = env.get(name) or env.get(name.upper())
    if not text or _direct(address, env.get("no_proxy") or env.get("NO_PROXY") or ""):
        return None
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host or parts.scheme != "http":
        # The text is not shown: it may hold a password.
        raise Permanent(
            f"{name.upper()} is no proxy that can be used",
            fault="platform",
            hint="http://HOST:PORT, also for https addresses",
        )
    headers = {}
    if parts.username is not None:
        login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        headers["Proxy-Authorization"] = "Basic " + base64.b64encode(login.encode()).decode()
    return _Proxy(host, port or 80, headers)


def _direct(address: SplitResult, no_proxy: str) -> bool:
    """Whether an address is asked without a proxy: hosts, domains, networks, ``*``."""
    host = address.hostname or ""
    try:
        ip = ipaddress.ip_address(host)
    except ValueError:
        ip = None
    if host == "localhost" or (ip is not None and ip.is_loopback):
        return True
    for entry in filter(None, (e.strip().lower() for e in no_proxy.split(","))):
        if ip is not None:
            with contextlib.suppress(ValueError):
                if ip in ipaddress.ip_network(entry, strict=False):
                    return True
        name, _, port = entry.partition(":")
        name = name.removeprefix("*").removeprefix(".")
        if port and port != str(address.port or ""):
            continue
        if entry == "*" or (name and (host == name or host.endswith("." + name))):
            return True
    return False
