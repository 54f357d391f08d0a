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
import os
import queue
import socket
import ssl
import threading
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit

from pairun.module import Failure, Fetched, Permanent, Secret, TimedOut, Transient, reveal

_USER_AGENT = "pairun"


class _Proxy(NamedTuple):
    """Where requests go instead of to the server itself."""

    host: str
    port: int
    headers: dict[str, str]


def fetch(
    url: str,
    *,
    method: str,
    headers: Mapping[str, str | Secret],
    limit_s: float,
    max_bytes: int,
    env: Mapping[str, str],
) -> Fetched:
    """Ask a server for something, once; a redirection is an answer like any other.

    Args:
        url: an http or https address without credentials.
        method: ``GET`` or ``HEAD``.
        headers: further headers.
        limit_s: seconds for everything: name, connection, TLS, answer.
        max_bytes: the largest body.
        env: ``HTTPS_PROXY``, ``HTTP_PROXY`` and ``NO_PROXY`` (either case) name proxies,
            ``SSL_CERT_FILE`` and ``SSL_CERT_DIR`` the certificate authorities, as OpenSSL has it.

    Raises:
        Transient: there was no answer, or none that is HTTP.
        TimedOut: the time was up.
        Permanent: the certificate is not valid, the address cannot be asked, the body is too large.
    """
    if method not in ("GET", "HEAD"):
        raise ValueError(f"fetch only reads: {method}")
    parts = _address(url)
    plain = _plain_headers(headers)
    where = _host_and_port(parts)
    if limit_s <= 0:
        raise TimedOut(f"no time was left to ask {where}", fault="platform")
    connection = _connection(parts, limit_s, env)
    target = parts._replace(fragment="")
    if parts.scheme == "http" and connection.host != parts.hostname:
        path = target.geturl()
    else:
        path = target._replace(scheme="", netloc="").geturl() or "/"
    proxy = _proxy(parts, env)
    if proxy is not None and parts.scheme == "http":
        plain.update({name: value.encode() for name, value in proxy.headers.items()})
    answers: queue.SimpleQueue[Fetched | Exception] = queue.SimpleQueue()

    def ask() -> None:
        try:
            answers.put(_ask(connection, method, path, plain, max_bytes, where))
        except Exception as e:  # noqa: BLE001 - handed to the caller's thread
            answers.put(e)
        finally:
            connection.close()

    threading.Thread(target=ask, name=f"fetch {where}", daemon=True).start()
    try:
        answer = answers.get(timeout=limit_s)
    except queue.Empty:
        answer = TimeoutError()
        _abandon(connection)
    if isinstance(answer, Exception):
        raise _failure(answer, where, limit_s, connection) from None
    return answer
