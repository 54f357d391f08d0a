"""Servers of files that send pairun elsewhere."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator

import pytest

from tests.attack.neighbours.test_registries import METADATA
from tests.modules.conftest import Harness


class Redirecting(http.server.BaseHTTPRequestHandler):
    """Answers with a redirect."""

    target = ""

    def do_GET(self) -> None:
        """Redirect."""
        self.send_response(302)
        self.send_header("Location", self.target)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def redirecting() -> Iterator[http.server.HTTPServer]:
    """A server that redirects to `Redirecting.target`."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Redirecting)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    ("target", "says"),
    [
        *(
            (f"http://{host}/latest/meta-data/", "an address of this machine's link")
            for host in METADATA
        ),
        ("file:///etc/passwd", "redirects to an invalid address"),
        ("gopher://127.0.0.1/", "redirects to an invalid address"),
    ],
)
def test_a_redirect_to_where_it_must_not_lead(
    harness: Harness,
    redirecting: http.server.HTTPServer,
    monkeypatch: pytest.MonkeyPatch,
    target: str,
    says: str,
) -> None:
    """A redirect to the metadata service or to a file is permanent, and nothing is written."""
    monkeypatch.setattr(Redirecting, "target", target)
    url = f"http://127.0.0.1:{redirecting.server_address[1]}/x"
    dest = harness.pai_dir / "x"
    failure = harness.run("download", {"url": url, "dest": str(dest)}).failure
    assert failure is not None
    assert failure.kind == "permanent"
    assert says in failure.message
    assert not dest.exists()
