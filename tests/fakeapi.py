"""An API server of one function."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from tests import webserver
from tests.webserver import Asked, WebServer

Answer = tuple[int, Any] | tuple[int, Any, Mapping[str, str]] | None
"""Status, body and headers; None breaks the connection off."""

Handler = Callable[[str, str, dict[str, str], Any], Answer]


class Fake:
    """An API server of one function."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self.asked: list[str] = []
        self.server = WebServer(self._reply)
        self.url = self.server.url
        self.close = self.server.close

    def _reply(self, asked: Asked) -> webserver.Answer | None:
        self.asked.append(f"{asked.method} {asked.path}")
        query = {k: v[0] for k, v in asked.query.items()}
        body = json.loads(asked.body or b"null")
        if (answer := self._handler(asked.method, asked.path, query, body)) is None:
            return None
        status, said, *more = answer
        data = said if isinstance(said, bytes) else json.dumps(said).encode()
        headers = more[0] if more else {"Retry-After": "0"} if status == 429 else {}
        return webserver.Answer(status, headers, data)


def status(code: int, reason: str = "", text: str = "") -> Answer:
    """An error as the API server says it."""
    return code, {"kind": "Status", "code": code, "reason": reason, "message": text}
