"""Git servers that never come to an end, or send pairun elsewhere.

Submodules, hooks, filters and variables are in modules/git_clone/test_program.py, credentials and
redirects in test_address.py.
"""

from __future__ import annotations

import contextlib
import os
import time

import pytest

from tests.modules.conftest import Harness
from tests.modules.git_clone.conftest import Request, Served

LIMIT_S = 4.0


def packet(text: bytes) -> bytes:
    """A line of git's protocol (gitprotocol-common(5), pkt-line)."""
    return b"%04x%s" % (len(text) + 4, text)


def endless(request: Request) -> bool:
    """Name one more reference, again and again, as protocol version 0 does."""
    request.close_connection = True
    request.send_response(200)
    request.send_header("Content-Type", "application/x-git-upload-pack-advertisement")
    request.end_headers()
    with contextlib.suppress(OSError):
        request.wfile.write(packet(b"# service=git-upload-pack\n") + b"0000")
        capabilities = b"\0multi_ack side-band-64k ofs-delta"
        number = 0
        while True:
            request.wfile.write(
                packet(b"%040x refs/heads/b%09d%s\n" % (number + 1, number, capabilities))
            )
            capabilities = b""
            number += 1
            if number % 200 == 0:
                time.sleep(0.01)
    return True


def headers_without_end(request: Request) -> bool:
    """Answer with one header after the other."""
    request.close_connection = True
    request.send_response(429)
    with contextlib.suppress(OSError):
        request.flush_headers()
        while True:
            request.wfile.write(b"X-Header: %s\r\n" % (b"x" * 1000) * 10)
            time.sleep(0.001)
    return True


def pack_without_end(request: Request) -> bool:
    """Answer a fetch with a pack that announces four billion objects, byte by byte."""
    if not request.path.endswith("git-upload-pack") or b"command=fetch" not in request.body:
        return False
    request.close_connection = True
    request.send_response(200)
    request.send_header("Content-Type", "application/x-git-upload-pack-result")
    request.end_headers()
    with contextlib.suppress(OSError):
        request.wfile.write(packet(b"packfile\n"))
        request.wfile.write(packet(b"\x01PACK\x00\x00\x00\x02\xff\xff\xff\xff"))
        while True:
            request.wfile.write(packet(b"\x01" + os.urandom(10)))
            time.sleep(0.05)
    return True


@pytest.mark.slow
@pytest.mark.parametrize("answer", [endless, pack_without_end, headers_without_end])
def test_a_server_that_never_ends(harness: Harness, served: Served, answer: object) -> None:
    """The attempt ends with its time, and leaves neither a process nor half a clone."""
    served.answer = answer  # type: ignore[assignment]
    dest = harness.pai_dir / "code"
    args = {"repo": served.url("a"), "dest": str(dest)}
    failure = harness.run("git_clone", args, deadline=time.monotonic() + LIMIT_S).failure
    assert failure is not None
    assert failure.kind in ("timeout", "transient")
    assert not dest.exists()


@pytest.mark.parametrize("target", ["http://169.254.169.254/a.git", "file:///etc", "ext::sh -c id"])
def test_a_redirect_to_where_it_must_not_lead(
    harness: Harness, served: Served, target: str
) -> None:
    """Git follows a redirect to http servers alone; what it finds there is shown to nobody."""
    served.answer = lambda request: request.reply(302, b"", {"Location": target + "/info/refs"})
    args = {"repo": served.url("a"), "dest": str(harness.pai_dir / "code"), "stall": "2s"}
    failure = harness.run("git_clone", args, deadline=time.monotonic() + 20).failure
    assert failure is not None
    assert not (harness.pai_dir / "code").exists()
