"""What requests does by itself, and pairun's sessions do not."""

from __future__ import annotations

import gzip
import socket
import threading
import time
from pathlib import Path

import pytest

from pairun.module import TimedOut
from pairun.net.exchange import fetch
from tests.net.test_exchange import OK, Start, free_port, start

__all__ = ["start"]


def test_the_environment_of_the_process_does_not_count(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Proxies and logins come from the task: no variable, no ``.netrc`` of the process."""
    netrc = tmp_path / ".netrc"
    netrc.write_text("machine localhost login me password s3cret\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{free_port()}")
    monkeypatch.setenv("ALL_PROXY", f"http://127.0.0.1:{free_port()}")
    server = start(OK)
    assert fetch(server.url, {}, method="GET", headers=None, limit_s=5).body == b"ok"
    assert "authorization" not in server.heads[0].lower()


def test_a_compressed_body_stays_as_it_was_sent(start: Start) -> None:
    """What is counted and digested is what came; nobody asked for compression either."""
    packed = gzip.compress(b"x" * 10_000)
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {len(packed)}\r\n\r\n"
    server = start(head.encode() + packed)
    answer = fetch(server.url, {}, method="GET", headers=None, limit_s=5, max_bytes=len(packed))
    assert answer.body == packed
    assert "\r\nAccept-Encoding: identity\r\n" in server.heads[0]


def test_no_cookie_is_kept(start: Start) -> None:
    """A server that sets one is not told it again."""
    server = start(b"HTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\nContent-Length: 0\r\n\r\n")
    for _ in range(2):
        fetch(server.url, {}, method="GET", headers=None, limit_s=5)
    assert not [head for head in server.heads if "cookie" in head.lower()]


def test_a_name_that_nobody_answers_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The look-up of a name has no timeout of its own, and the limit holds all the same."""
    release = threading.Event()

    def no_answer(*_: object, **__: object) -> list[object]:
        release.wait(30)
        raise socket.gaierror(socket.EAI_AGAIN, "no answer")

    monkeypatch.setattr(socket, "getaddrinfo", no_answer)
    began = time.monotonic()
    with pytest.raises(TimedOut, match="did not answer within 200ms"):
        fetch("http://name.example/", {}, method="GET", headers=None, limit_s=0.2)
    release.set()
    assert time.monotonic() - began < 25
