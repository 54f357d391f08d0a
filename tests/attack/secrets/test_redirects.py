"""A server that redirects each request to another host: the other host never sees the credentials."""

from __future__ import annotations

import base64
import contextlib
import http.server
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pairun.cli.main import main
from pairun.errors import PairunError
from pairun.module import Failure, Secret
from tests.engines.kubernetes.samples import TOKEN, kubeconfig
from tests.modules.conftest import Harness, harness

__all__ = ["harness"]
WORD = "tr4vels-nowhere"
BASIC = base64.b64encode(f"alice:{WORD}".encode()).decode()


class Server(http.server.ThreadingHTTPServer):
    """Keeps what it was sent, and redirects to `target` if there is one; asks for a login on the way.

    Attributes:
        host: its address by a name that no other server has.
        seen: request lines, headers and bodies.
        target: the origin of the other server.
    """

    def __init__(self, name: str) -> None:
        self.seen: list[str] = []
        self.target = ""
        super().__init__(("127.0.0.1", 0), _Handler)
        self.host = f"{name}:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()


class _Handler(http.server.BaseHTTPRequestHandler):
    def _answer(self) -> None:
        server = self.server
        assert isinstance(server, Server)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        server.seen.append(f"{self.requestline}\n{self.headers}\n{body!r}")
        asks_first = self.path.startswith(("/a.git", "/v2/")) and not self.headers["Authorization"]
        if server.target and not asks_first:
            self.send_response(307)
            self.send_header("Location", f"http://{server.target}{self.path}")
        else:
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="x"')
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_HEAD = do_POST = _answer  # noqa: N815

    def log_message(self, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def servers() -> Iterator[tuple[Server, Server]]:
    """One that redirects to the other, which is another host by its name."""
    first, other = Server("127.0.0.1"), Server("localhost")
    first.target = other.host
    yield first, other
    for server in (first, other):
        server.shutdown()
        server.server_close()


Use = Callable[[str, Harness], object]


def _module(name: str, args: Callable[[str, Path], dict[str, Any]]) -> Use:
    return lambda host, harness: harness.run(name, args(host, harness.tmp))


def _status(host: str, harness: Harness) -> None:
    config = kubeconfig(harness.tmp / "config", f"http://{host}")
    main(["status", "job", "--kubeconfig", config])


USES: dict[str, Use] = {
    "download": _module("download", lambda host, tmp: {
        "url": f"http://{host}/x", "dest": str(tmp / "x"),
        "headers": {"Authorization": Secret(f"Bearer {WORD}"), "X-Token": Secret(WORD)}}),
    "git_clone": _module("git_clone", lambda host, tmp: {
        "repo": Secret(f"http://alice:{WORD}@{host}/a.git"), "dest": str(tmp / "clone")}),
    "image_check": _module("image_check", lambda host, _: {
        "image": f"{host}/team/image:1",
        "auth": {"username": "alice", "password": Secret(WORD), "registry": host}}),
    "notify": _module("notify", lambda host, _: {
        "url": Secret(f"http://{host}/hook/{WORD}"), "text": "hello"}),
    "status": _status,
}  # fmt: skip


@pytest.mark.parametrize("use", USES)
def test_another_host_sees_no_credentials(
    use: str, servers: tuple[Server, Server], harness: Harness
) -> None:
    first, other = servers
    with contextlib.suppress(Failure, PairunError):
        USES[use](first.host, harness)
    secrets = (WORD, BASIC, TOKEN)
    assert any(secret in each for each in first.seen for secret in secrets), first.seen
    assert not any(secret in each for each in other.seen for secret in secrets), other.seen
