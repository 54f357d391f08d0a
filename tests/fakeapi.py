"""An API server of one function."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

Answer = tuple[int, Any] | tuple[int, Any, Mapping[str, str]] | None
"""Status, body and headers; None breaks the connection off."""

Handler = Callable[[str, str, dict[str, str], Any], Answer]


class Fake:
    """An API server of one function."""

    def __init__(self, handler: Handler) -> None:
        outer = self
        self.asked: list[str] = []

        class Handling(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # else each answer waits 40 ms for an acknowledgement

            def _serve(self) -> None:
                size = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(size) or b"null")
                url = urlsplit(self.path)
                query = {k: v[0] for k, v in parse_qs(url.query).items()}
                outer.asked.append(f"{self.command} {url.path}")
                answer = handler(self.command, url.path, query, body)
                if answer is None:
                    self.close_connection = True
                    return
                status, said, *more = answer
                data = said if isinstance(said, bytes) else json.dumps(said).encode()
                headers = more[0] if more else {"Retry-After": "0"} if status == 429 else {}
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(data))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_PATCH = do_DELETE = _serve  # noqa: N815

            def log_message(self, *args: object) -> None:
                """Say nothing."""

        class Server(ThreadingHTTPServer):
            def handle_error(self, *_: object) -> None:
                """Who gave the call up is no error here."""

        self.server = Server(("127.0.0.1", 0), Handling)
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        """Stop it."""
        self.server.shutdown()
        self.server.server_close()

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.server.server_port}"


def status(code: int, reason: str = "", text: str = "") -> Answer:
    """An error as the API server says it."""
    return code, {"kind": "Status", "code": code, "reason": reason, "message": text}
