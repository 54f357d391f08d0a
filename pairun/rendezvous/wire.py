"""The wire format: frames of limited size, each authenticated with the job's key. Does no I/O.

Both sides greet with a magic word and 16 random bytes. A frame is five bytes (whether it is
compressed, and its length), an HMAC-SHA256 if the job has a key, and JSON. The HMAC's key derives
from the job's key and both greetings, and the HMAC covers the direction and a counter, so a
recorded frame cannot be replayed.
"""

from __future__ import annotations

import functools
import hashlib
import hmac
import json
import os
import struct
import zlib
from typing import Any, Final

from pairun.base.foreignjson import parse_record

MAX_FIRST_BYTES = 32 * 1024
"""The largest frame that an unauthenticated peer may send."""

MAX_FRAME_BYTES = 16 * 1024 * 1024
MAX_INFLATED_BYTES = 64 * 1024 * 1024
"""A roster of 10,000 members has 2 MiB, compressed 0.4 MiB."""

_COMPRESS_FROM_BYTES = 1024
_MAGIC: Final = {True: b"PRZ1", False: b"PRZ0"}
_NONCE_BYTES = 16
_GREETING_BYTES = 4 + _NONCE_BYTES
_HEAD = struct.Struct(">BI")
_ENCODER = json.JSONEncoder(separators=(",", ":"))
_MAC_BYTES = hashlib.sha256().digest_size

Message = dict[str, Any]


class BadPeer(Exception):
    """A peer sent something that no member of this job sends; the message describes it."""


class Packed:
    """An encoded message, so that a message to many peers is encoded once.

    Attributes:
        compressed: whether `data` is compressed.
        data: JSON, in UTF-8.
    """

    def __init__(self, data: bytes, *, compressed: bool) -> None:
        self.data = data
        self.compressed = compressed

    @functools.cached_property
    def message(self) -> Message:
        """The message: a mapping with a text under ``t``.

        Raises:
            BadPeer: it is not such a mapping, or too large.
        """
        message = parse_record(_inflate(self.data) if self.compressed else self.data)
        if message is None or not isinstance(message.get("t"), str):
            raise BadPeer("it sent an invalid message")
        return message


def pack(message: Message) -> Packed:
    """Encode a message."""
    data = _ENCODER.encode(message).encode()
    if len(data) < _COMPRESS_FROM_BYTES:
        return Packed(data, compressed=False)
    return Packed(zlib.compress(data, 3), compressed=True)


def _inflate(data: bytes) -> bytes:
    inflater = zlib.decompressobj()
    try:
        inflated = inflater.decompress(data, MAX_INFLATED_BYTES)
    except zlib.error:
        raise BadPeer("it sent invalid compressed data") from None
    if not inflater.eof:
        raise BadPeer("it sent a message that is too large, or cut off")
    return inflated


class Channel:
    """One side of a connection.

    Args:
        key: the job's key; without one, nothing is authenticated.
        serves: whether this side accepted the connection.

    Attributes:
        greeting: the bytes to send first.
        is_ready: whether the other side has greeted, so that frames can be made.
        is_proven: whether a valid frame from the other side was received.
    """

    def __init__(self, key: bytes | None, *, serves: bool) -> None:
        self.greeting = _MAGIC[key is not None] + os.urandom(_NONCE_BYTES)
        self.is_ready = False
        self.is_proven = False
        self._key = key
        self._serves = serves
        self._session = b""
        self._received = bytearray()
        self._counts = [0, 0]

    def feed(self, data: bytes) -> list[Packed]:
        """Take received bytes, in pieces of any size; returns the complete messages.

        Raises:
            BadPeer: the other side is not a member of this job; the connection must be closed.
        """
        self._received += data
        complete: list[Packed] = []
        if not self.is_ready and not self._greeted():
            return complete
        while (packed := self._next()) is not None:
            complete.append(packed)
        return complete

    def _greeted(self) -> bool:
        magic = self.greeting[:4]
        if self._received[:4] != magic[: len(self._received)]:
            is_ours = self._received[:3] == magic[:3]
            raise BadPeer(
                "only one side has the job's key"
                if is_ours
                else "it does not use pairun's protocol"
            )
        if len(self._received) < _GREETING_BYTES:
            return False
        theirs = bytes(self._received[:_GREETING_BYTES])
        del self._received[:_GREETING_BYTES]
        if self._key is not None:
            server, client = (self.greeting, theirs) if self._serves else (theirs, self.greeting)
            self._session = hmac.digest(self._key, server + client, "sha256")
        self.is_ready = True
        return True

    def _next(self) -> Packed | None:
        if len(self._received) < _HEAD.size:
            return None
        compressed, length = _HEAD.unpack_from(self._received)
        trusted = self.is_proven and self._key is not None
        if compressed > 1 or length > (MAX_FRAME_BYTES if trusted else MAX_FIRST_BYTES):
            raise BadPeer("it sent a frame that is too large")
        proof = _MAC_BYTES if self._key is not None else 0
        end = _HEAD.size + proof + length
        if len(self._received) < end:
            return None
        head = bytes(self._received[: _HEAD.size])
        mac = bytes(self._received[_HEAD.size : _HEAD.size + proof])
        data = bytes(self._received[_HEAD.size + proof : end])
        del self._received[:end]
        if not hmac.compare_digest(mac, self._mac(head, data, by_server=not self._serves)):
            raise BadPeer("it does not have the job's key")
        if compressed and not trusted and self._key is None:
            raise BadPeer("it sent a compressed frame without a key")
        self.is_proven = True
        return Packed(data, compressed=bool(compressed))

    def frame(self, packed: Packed) -> bytes:
        """The bytes of a message; the other side must have greeted."""
        assert self.is_ready
        head = _HEAD.pack(packed.compressed, len(packed.data))
        return head + self._mac(head, packed.data, by_server=self._serves) + packed.data

    def _mac(self, head: bytes, data: bytes, *, by_server: bool) -> bytes:
        if self._key is None:
            return b""
        count = self._counts[by_server]
        self._counts[by_server] += 1
        covered = struct.pack(">?Q", by_server, count) + head + data
        return hmac.digest(self._session, covered, "sha256")
