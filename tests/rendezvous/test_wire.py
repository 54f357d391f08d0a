"""Frames: whatever the pieces, whatever the peer."""

from __future__ import annotations

import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairun.rendezvous.wire import (
    MAX_FIRST_BYTES,
    BadPeer,
    Channel,
    Packed,
    pack,
)

KEY = b"k" * 32
MESSAGES = st.lists(
    st.dictionaries(st.text(max_size=8), st.text(max_size=4000), max_size=3).map(
        lambda d: {**d, "t": "x"}
    ),
    min_size=1,
    max_size=5,
)


def pair(theirs: bytes | None = KEY, ours: bytes | None = KEY) -> tuple[Channel, Channel]:
    """A client and a server that have greeted each other."""
    client, server = Channel(theirs, serves=False), Channel(ours, serves=True)
    assert client.feed(server.greeting) == server.feed(client.greeting) == []
    return client, server


@given(messages=MESSAGES, pieces=st.lists(st.integers(1, 50), min_size=1), key=st.booleans())
def test_messages_arrive_whatever_the_pieces(
    messages: list[dict[str, str]], pieces: list[int], *, key: bool
) -> None:
    """However a connection cuts the bytes, the same messages come out, in order."""
    client, server = pair(*(KEY, KEY) if key else (None, None))
    packed = [p for p in map(pack, messages) if key or not p.compressed]
    data = b"".join(client.frame(p) for p in packed)
    found, n = [], 0
    while data:
        size = pieces[n % len(pieces)]
        found += server.feed(data[:size])
        data, n = data[size:], n + 1
    assert [p.message for p in found] == [p.message for p in packed]


@given(data=st.binary(max_size=400), greeted=st.booleans(), key=st.booleans())
def test_garbage_is_no_message(data: bytes, *, greeted: bool, key: bool) -> None:
    """Random bytes give nothing or a refusal, and never another exception."""
    server = Channel(KEY if key else None, serves=True)
    if greeted:
        server.feed(Channel(KEY if key else None, serves=False).greeting)
    try:
        found = server.feed(data)
        for packed in found:
            assert packed.message
    except BadPeer:
        return
    assert not (key and found)


def test_a_peer_that_has_proven_nothing_may_send_little() -> None:
    """The size is refused when it is announced, before anything is kept."""
    client, server = pair()
    with pytest.raises(BadPeer, match="too large"):
        server.feed(struct.pack(">BI", 0, MAX_FIRST_BYTES + 1))
    client, server = pair()
    server.feed(client.frame(pack({"t": "x"})))
    large = pack({"t": "x", "v": [str(n * 7919 % 65537) for n in range(40_000)]})
    assert len(large.data) > MAX_FIRST_BYTES
    assert server.feed(client.frame(large))[0].message == large.message


def test_another_key_is_no_proof() -> None:
    """Nor is none, and each is said."""
    client, server = pair(b"x" * 32)
    with pytest.raises(BadPeer, match="does not have the job's key"):
        server.feed(client.frame(pack({"t": "x"})))
    with pytest.raises(BadPeer, match="only one side has the job's key"):
        pair(None)
    with pytest.raises(BadPeer, match="does not use pairun's protocol"):
        Channel(KEY, serves=True).feed(b"GET / HTTP/1.1\r\n")


def test_what_was_recorded_cannot_be_said_again() -> None:
    """Neither on the same connection, nor on another, nor back to its sender."""
    client, server = pair()
    frame = client.frame(pack({"t": "x"}))
    assert server.feed(frame)
    with pytest.raises(BadPeer):
        server.feed(frame)
    other = Channel(KEY, serves=True)
    other.feed(client.greeting)
    with pytest.raises(BadPeer):
        other.feed(frame)
    with pytest.raises(BadPeer):
        client.feed(frame)


@pytest.mark.parametrize(
    "data", [b"[]", b"{}", b'{"t":1}', b"\xff", b"[" * 20_000, b"9" * 10_000, b"NaN"]
)
def test_json_that_is_no_message_is_refused(data: bytes) -> None:
    """A mapping with a word, and nothing else."""
    with pytest.raises(BadPeer):
        _ = Packed(data, compressed=False).message


def test_a_bomb_is_not_inflated() -> None:
    """Compressed data has a limit too, and must be whole."""
    bomb = zlib.compress(b" " * (65 * 1024 * 1024), 9)
    for data in (bomb, bomb[:-100], b"no zlib"):
        with pytest.raises(BadPeer):
            _ = Packed(data, compressed=True).message
    client, server = pair(None, None)
    with pytest.raises(BadPeer, match="without a key"):
        server.feed(client.frame(Packed(zlib.compress(b"{}"), compressed=True)))
