"""A server that redirects each request to another host: the other host never sees the credentials."""

from __future__ import annotations

import base64
import contextlib
import http.server
import os
import shutil
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

    do_GET = do_HEAD = do_POST = do_PROPFIND = _answer  # noqa: N815

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


SETTINGS: dict[str, dict[str, str]] = {
    "b2": {"account": "alice", "key": WORD, "endpoint": "http://{host}"},
    "webdav": {"url": "http://{host}/dav", "vendor": "other", "bearer_token": WORD},
    "http": {"url": "http://{host}/x/", "headers": f"X-Token,{WORD}"},
    "googlecloudstorage": {"endpoint": "http://{host}", "project_number": "1",
                           "token": f'{{"access_token": "{WORD}", "expiry": "2099-01-01T00:00:00Z"}}'},
    "swift": {"user": "alice", "key": WORD, "auth": "http://{host}/v1.0", "auth_version": "1"},
}  # fmt: skip
STORAGES: dict[str, tuple[dict[str, Any], bool]] = {
    "s3": ({"bucket": "team", "access_key": "alice", "secret_key": WORD, "region": "us-east-1",
            "endpoint": "http://{host}"}, False),
    "azureblob": ({"container": "team", "sas_url": f"http://{{host}}/a?sv=2020&sig={WORD}"}, True),
    **{name: ({"type": "rclone", "settings": {"type": name, **settings}},
              name not in ("b2", "webdav")) for name, settings in SETTINGS.items()},
}  # fmt: skip
"""What mounts each storage, and whether rclone 1.60 takes its credentials along to another host."""


def _filled(value: Any, host: str) -> Any:
    if isinstance(value, dict):
        return {name: _filled(each, host) for name, each in value.items()}
    return value.replace("{host}", host)


@pytest.mark.parametrize("name", STORAGES)
def test_what_rclone_takes_along(
    name: str, servers: tuple[Server, Server], harness: Harness
) -> None:
    """docs/security.md names the storages whose credentials another host sees."""
    bundled = Path(__file__).parents[3] / "build/bundle/tools"
    if not (
        Path("/dev/fuse").exists()
        and shutil.which("rclone", path=f"{bundled}:{os.environ['PATH']}")
    ):
        pytest.skip("needs /dev/fuse and rclone")
    first, other = servers
    fields, takes_along = STORAGES[name]
    storage = {"type": name, "path": f"{harness.tmp}/mnt", **_filled(fields, first.host)}
    env = {"PATH": os.environ["PATH"], "PAIRUN_TOOLS": str(bundled)}
    failure = harness.run("mount_storage", {"storages": [storage]}, env).failure
    assert failure is not None
    assert WORD not in failure.message
    assert other.seen, failure.message
    assert any(WORD in each or "Authorization" in each for each in first.seen)
    assert any(WORD in each or "Authorization" in each for each in other.seen) == takes_along
