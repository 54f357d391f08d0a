"""Git servers that never come to an end, or send pairun elsewhere.

Submodules, hooks, filters and variables are in modules/git_clone/test_program.py, credentials and
redirects in test_address.py.
"""

from __future__ import annotations

import os
import time

import pytest

from tests.modules.conftest import Harness
from tests.modules.git_clone.conftest import Served
from tests.webserver import Answer, Asked

LIMIT_S = 4.0


def packet(text: bytes) -> bytes:
    """A line of git's protocol (gitprotocol-common(5), pkt-line)."""
    return b"%04x%s" % (len(text) + 4, text)


def endless(asked: Asked) -> None:
    """Name one more reference, again and again, as protocol version 0 does."""
    asked.handler.send_response(200)
    asked.handler.send_header("Content-Type", "application/x-git-upload-pack-advertisement")
    asked.handler.end_headers()
    asked.handler.wfile.write(packet(b"# service=git-upload-pack\n") + b"0000")
    capabilities = b"\0multi_ack side-band-64k ofs-delta"
    number = 0
    while True:
        asked.handler.wfile.write(
            packet(b"%040x refs/heads/b%09d%s\n" % (number + 1, number, capabilities))
        )
        capabilities = b""
        number += 1
        if number % 200 == 0:
            time.sleep(0.01)


def headers_without_end(asked: Asked) -> None:
    """Answer with one header after the other."""
    asked.handler.send_response(429)
    asked.handler.flush_headers()
    while True:
        asked.handler.wfile.write(b"X-Header: %s\r\n" % (b"x" * 1000) * 10)
        time.sleep(0.001)


def pack_without_end(asked: Asked) -> None:
    """Answer a fetch with a pack that announces four billion objects, byte by byte."""
    if not asked.path.endswith("git-upload-pack") or b"command=fetch" not in asked.body:
        return
    asked.handler.send_response(200)
    asked.handler.send_header("Content-Type", "application/x-git-upload-pack-result")
    asked.handler.end_headers()
    asked.handler.wfile.write(packet(b"packfile\n"))
    asked.handler.wfile.write(packet(b"\x01PACK\x00\x00\x00\x02\xff\xff\xff\xff"))
    while True:
        asked.handler.wfile.write(packet(b"\x01" + os.urandom(10)))
        time.sleep(0.05)


@pytest.mark.slow
@pytest.mark.parametrize("answer", [endless, pack_without_end, headers_without_end])
def test_a_server_that_never_ends(harness: Harness, served: Served, answer: object) -> None:
    """The attempt ends with its time, and leaves neither a process nor half a clone."""
    served.answer = answer  # type: ignore[assignment]
    dest = harness.pai_dir / "code"
    args = {"repo": served.address("a"), "dest": str(dest)}
    failure = harness.run("git_clone", args, deadline=time.monotonic() + LIMIT_S).failure
    assert failure is not None
    assert failure.kind in ("timeout", "transient")
    assert not dest.exists()


@pytest.mark.parametrize("target", ["http://169.254.169.254/a.git", "file:///etc", "ext::sh -c id"])
def test_a_redirect_to_where_it_must_not_lead(
    harness: Harness, served: Served, target: str
) -> None:
    """Git follows a redirect to http servers alone; what it finds there is shown to nobody."""
    served.answer = lambda _: Answer(302, {"Location": target + "/info/refs"})
    args = {"repo": served.address("a"), "dest": str(harness.pai_dir / "code"), "stall": "2s"}
    failure = harness.run("git_clone", args, deadline=time.monotonic() + 20).failure
    assert failure is not None
    assert not (harness.pai_dir / "code").exists()
