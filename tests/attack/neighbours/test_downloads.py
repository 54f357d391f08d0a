"""Servers of files that send pairun elsewhere."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.attack.neighbours.test_registries import METADATA
from tests.modules.conftest import Harness
from tests.webserver import Answer, WebServer


@pytest.fixture
def server() -> Iterator[WebServer]:
    """A server that sends pairun elsewhere."""
    made = WebServer()
    yield made
    made.close()


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
    harness: Harness, server: WebServer, target: str, says: str
) -> None:
    """A redirect to the metadata service or to a file is permanent, and nothing is written."""
    server.reply = lambda _: Answer(302, {"Location": target})
    dest = harness.pai_dir / "x"
    failure = harness.run("download", {"url": f"{server.url}/x", "dest": str(dest)}).failure
    assert failure is not None
    assert failure.kind == "permanent"
    assert says in failure.message
    assert not dest.exists()
