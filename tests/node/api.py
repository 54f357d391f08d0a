"""A Kubernetes API server, by the standard library."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode, urlsplit

TIMEOUT_S = 30.0

Object = dict[str, Any]


class ApiError(Exception):
    """The server's refusal.

    Attributes:
        status: of HTTP.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status


class Api:
    """An API server.

    Args:
        url: of the server.
        authority: file with the certificate that it must show.
        token: of who asks.
    """

    def __init__(self, url: str, authority: str, token: str) -> None:
        parts = urlsplit(url)
        self._address = (parts.hostname or "", parts.port or 443)
        self._context = ssl.create_default_context(cafile=authority)
        self._headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}

    def call(
        self,
        method: str,
        path: str,
        body: Object | None = None,
        content: str = "application/json",
    ) -> Object:
        """Ask for one answer.

        Raises:
            ApiError: the server refuses.
        """
        connection = self._connect(TIMEOUT_S)
        try:
            sent = None if body is None else json.dumps(body).encode()
            headers = {**self._headers, "Content-Type": content}
            connection.request(method, path, sent, headers)
            return _answer(connection.getresponse())
        finally:
            connection.close()

    def get(self, path: str) -> Object:
        """Read an object or a list."""
        return self.call("GET", path)

    def find(self, path: str) -> Object | None:
        """Read an object; None where there is none."""
        try:
            return self.get(path)
        except ApiError as e:
            if e.status != 404:
                raise
            return None

    def create(self, path: str, made: Object) -> Object:
        """Create an object in a collection."""
        return self.call("POST", path, made)

    def merge(self, path: str, patch: Object) -> Object:
        """Change a part of an object."""
        return self.call("PATCH", path, patch, "application/merge-patch+json")

    def delete(self, path: str, body: Object | None = None) -> None:
        """Delete an object, which may be gone already."""
        try:
            self.call("DELETE", path, body)
        except ApiError as e:
            if e.status != 404:
                raise

    def watch(self, path: str, version: str, seconds: int) -> Iterator[Object]:
        """The events of a collection after a version, for at most so many seconds.

        Raises:
            ApiError: the server refuses, or has forgotten the version (410).
        """
        asked = {"watch": "1", "resourceVersion": version, "timeoutSeconds": str(seconds)}
        connection = self._connect(seconds + TIMEOUT_S)
        try:
            connection.request("GET", f"{path}?{urlencode(asked)}", headers=self._headers)
            response = connection.getresponse()
            if response.status != 200:
                _answer(response)
            while line := response.readline():
                event: Object = json.loads(line)
                if event["type"] == "ERROR":
                    raise ApiError(event["object"]["code"], event["object"]["message"])
                yield event
        finally:
            connection.close()

    def _connect(self, timeout_s: float) -> http.client.HTTPSConnection:
        connection = http.client.HTTPSConnection(
            *self._address, timeout=timeout_s, context=self._context
        )
        connection.connect()
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection


def _answer(response: http.client.HTTPResponse) -> Object:
    data = response.read()
    if response.status >= 300:
        raise ApiError(response.status, data.decode(errors="replace"))
    answer: Object = json.loads(data)
    return answer
