"""One request and its response, within a time limit that holds whatever the server does.

A thread sends the request, and the caller waits for at most the time limit. A socket timeout is not
enough: it does not limit a name lookup, several addresses in turn, or a server that sends a byte
now and then.
"""

from __future__ import annotations

import contextlib
import queue
import re
import threading
import time
from collections.abc import Mapping
from typing import Any, Self

from pairun.module import Fetched, Permanent, Secret, reveal
from pairun.net.failures import failure_of
from pairun.net.package import requests
from pairun.net.session import Session

_PIECE = 256 * 1024
_AHEAD = 8


class Deadline:
    """A point in time; ``limit_s`` is the time limit that it was made from."""

    def __init__(self, limit_s: float) -> None:
        self.limit_s = limit_s
        self._end = time.monotonic() + limit_s

    def left_s(self) -> float:
        """The seconds until the deadline."""
        return max(0.0, self._end - time.monotonic())


class Exchange:
    """A request in a thread that reads the response ahead: call `head` once, then `read` or `body`.

    The body is not decoded: what a server compresses stays compressed.

    Args:
        session: the session, which handles one request at a time.
        method: the HTTP method.
        url: the address, on the session's server.
        headers: further headers.
        deadline: the limit for each single step of the connection.
        data: the request's body.

    Attributes:
        where: the server's name for people.

    Raises:
        Permanent: the address or a header cannot be sent.
        TimedOut: no time is left.
    """

    def __init__(
        self,
        session: Session,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str | Secret],
        deadline: Deadline,
        data: bytes | None = None,
    ) -> None:
        self.where = session.where
        self._session = session
        self._request = _prepared(method, url, headers, data, session.where)
        self._step_s = deadline.left_s()
        if not self._step_s:
            raise failure_of(TimeoutError(), self.where, deadline.limit_s)
        self._pieces: queue.Queue[Fetched | bytes | Exception] = queue.Queue(_AHEAD)
        self._given_up = threading.Event()
        self._is_over = False

    def __enter__(self) -> Self:
        threading.Thread(target=self._work, name="asking", daemon=True).start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._given_up.set()
        if not self._is_over:
            self._session.abort()

    def head(self, deadline: Deadline) -> Fetched:
        """The status and headers; the body follows.

        Raises:
            Failure: there is no response; see `pairun.net.failures`.
        """
        head = self._next(deadline)
        assert isinstance(head, Fetched)
        return head

    def read(self, deadline: Deadline) -> bytes:
        """The next piece of the body; empty at its end.

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

    def _next(self, deadline: Deadline) -> Fetched | bytes:
        try:
            item = self._pieces.get(timeout=deadline.left_s())
        except queue.Empty:
            item = TimeoutError()
        if isinstance(item, Exception):
            raise failure_of(item, self.where, deadline.limit_s) from None
        return item

    def _work(self) -> None:
        try:
            self._ask()
        except Exception as e:  # noqa: BLE001 - for the thread that waits
            self._put(e)

    def _ask(self) -> None:
        with self._session.send(self._request, stream=True, timeout=self._step_s) as response:
            raw: Any = response.raw
            self._put(Fetched(response.status_code, _headers(raw.headers), b""))
            while not self._given_up.is_set():
                # At its end the connection becomes free for the next request.
                piece = raw.read1(_PIECE, decode_content=False)
                self._is_over = not piece
                self._put(piece)
                if not piece:
                    return

    def _put(self, item: Fetched | bytes | Exception) -> None:
        while not self._given_up.is_set():
            with contextlib.suppress(queue.Full):
                self._pieces.put(item, timeout=0.5)
                return


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
    with (
        Session.to(url, env) as session,
        Exchange(
            session, method, url, headers=headers or {}, deadline=deadline, data=data
        ) as exchange,
    ):
        head = exchange.head(deadline)
        return head._replace(body=exchange.body(deadline, max_bytes))


def too_large(where: str, max_bytes: int) -> Permanent:
    """The failure of a body that is larger than allowed."""
    return Permanent(f"{where}: the answer is larger than {max_bytes} bytes", fault="platform")


def _prepared(
    method: str,
    url: str,
    headers: Mapping[str, str | Secret],
    data: bytes | None,
    where: str,
) -> requests.PreparedRequest:
    """Prepare a request.

    Raises:
        Permanent: it is invalid; the message shows no value.
    """
    sent: dict[str, str | bytes] = {"User-Agent": "pairun", "Accept-Encoding": "identity"}
    for name, value in headers.items():
        line = reveal(value).encode("utf-8", "surrogateescape")
        if re.search(rb"[\r\n\0]", line):
            raise Permanent(f"the header {name} contains a line break")
        sent[name] = line
    try:
        return requests.Request(method, url, headers=sent, data=data).prepare()
    except requests.exceptions.InvalidHeader:
        raise Permanent("a header begins with a space, or its name is invalid") from None
    except ValueError as e:
        raise failure_of(e, where, 0.0) from None


def _headers(items: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """The values of each header, by lower-case name, each on one line."""
    headers: dict[str, tuple[str, ...]] = {}
    for name, text in items.items():
        line = re.sub(r"[ \t]*[\r\n]+[ \t]*", " ", text)
        headers[name.lower()] = (*headers.get(name.lower(), ()), line)
    return headers
