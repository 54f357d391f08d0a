"""An HTTP server in a thread, which answers by a function."""

from __future__ import annotations

import contextlib
import ssl
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit


class Request(BaseHTTPRequestHandler):
    """Reads a request, and sends its answer."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else each answer waits 40 ms for an acknowledgement
    server: WebServer

    def setup(self) -> None:
        self.server.connections += 1
        super().setup()

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        url = urlsplit(self.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        asked = Asked(self.command, url.path, parse_qs(url.query), headers, body, self.path, self)
        self.server.asked.append(asked)
        with contextlib.suppress(OSError):
            if (answer := self.server.reply(asked)) is not None:
                return self.send(answer)
        self.close_connection = True
        return None

    def send(self, answer: Answer) -> None:
        """Send an answer now."""
        self.send_response(answer.status, answer.reason)
        for name, value in {"Content-Length": str(len(answer.body)), **answer.headers}.items():
            for line in value.split("\n"):
                self.send_header(name, line)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    do_GET = do_HEAD = do_POST = do_PATCH = do_DELETE = _serve  # noqa: N815

    def log_message(self, *args: object) -> None:
        """Say nothing."""


class Asked(NamedTuple):
    """A request; names of headers in lower case. A reply may write to its handler by itself.

    Attributes:
        target: path and query as they were sent.
    """

    method: str
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]
    body: bytes
    target: str
    handler: Request

    @property
    def authorization(self) -> str | None:
        return self.headers.get("authorization")


class Answer(NamedTuple):
    """What it says; a header with several lines is sent several times."""

    status: int
    headers: Mapping[str, str] = MappingProxyType({})
    body: bytes = b""
    reason: str | None = None


Reply = Callable[[Asked], Answer | None]


class WebServer(ThreadingHTTPServer):
    """A server in a thread; it breaks the connection off where the reply is None.

    Attributes:
        reply: answers a request.
        asked: every request, in order.
        connections: how many there were.
    """

    daemon_threads = True
    block_on_close = False

    def __init__(
        self, reply: Reply = lambda _: Answer(500), tls: ssl.SSLContext | None = None
    ) -> None:
        self.reply = reply
        self.asked: list[Asked] = []
        self.connections = 0
        self._closing = threading.Event()
        super().__init__(("127.0.0.1", 0), Request)
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_side=True)
        self.port = self.server_port
        self.host = f"127.0.0.1:{self.port}"
        self.url = f"http://{self.host}"
        self._thread = threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def hang(self, _: Asked | None = None) -> Answer | None:
        """A reply that does not come until the server is closed."""
        self._closing.wait(30)
        return None

    def handle_error(self, *_: object) -> None:
        """Who gave the call up is no error here."""

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Refuse connections from now on."""
        self._closing.set()
        self.shutdown()
        self.server_close()
        self._thread.join()
