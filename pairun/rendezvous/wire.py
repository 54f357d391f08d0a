"""What goes over a connection: frames of limited size, each proven by the job's key.

Both sides greet with a magic word and 16 random bytes. A frame is five bytes (whether it is
compressed, and its length), an HMAC-SHA256 where the job has a key, and JSON. The HMAC's key is
made of the job's key and both greetings, and covers the direction and a counter, so that nothing
which was recorded can be said again. Nothing here does input or output.
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

MAX_FIRST_BYTES = 32 * 1024
"""What a peer may send in one frame before it has proven itself."""

MAX_FRAME_BYTES = 16 * 1024 * 1024
MAX_INFLATED_BYTES = 64 * 1024 * 1024
"""A roster of 10,000 members has 2 MiB, and 0.4 MiB when it is compressed."""

_COMPRESS_FROM_BYTES = 1024
_MAGIC: Final = {True: b"PRZ1", False: b"PRZ0"}
_NONCE_BYTES = 16
_GREETING_BYTES = 4 + _NONCE_BYTES
_HEAD = struct.Struct(">BI")
_MAC_BYTES = hashlib.sha256().digest_size

Message = dict[str, Any]


class BadPeer(Exception):
    """What came is not what a member of this job sends; the message says why, in words."""


class Packed:
    """A message as it goes over the wire, so that one for many is made once.

    Attributes:
        compressed: whether `data` is compressed.
        data: JSON, in UTF-8.
    """

    def __init__(self, data: bytes, *, compressed: bool) -> None:
        self.data = data
        self.compressed = compressed

    @functools.cached_property
    def message(self) -> Message:
        """What is said; always a mapping with a word under ``t``.

        Raises:
            BadPeer: it is not that, or too large.
        """
        data = _inflate(self.data) if self.compressed else self.data
        try:
            message = json.loads(data)
        except (ValueError, RecursionError):
            raise BadPeer("it sent what is not JSON") from None
        if not isinstance(message, dict) or not isinstance(message.get("t"), str):
            raise BadPeer("it sent JSON that is no message")
        return message


def pack(message: Message) -> Packed:
    """Make a message ready for sending."""
    data = json.dumps(message, separators=(",", ":")).encode()
    if len(data) < _COMPRESS_FROM_BYTES:
        return Packed(data, compressed=False)
    return Packed(zlib.compress(data, 3), compressed=True)


def _inflate(data: bytes) -> bytes:
    inflater = zlib.decompressobj()
    try:
        found = inflater.decompress(data, MAX_INFLATED_BYTES)
    except zlib.error:
        raise BadPeer("it sent what cannot be inflated") from None
    if not inflater.eof:
        raise BadPeer("it sent a message that is too large, or cut off")
    return found


class Channel:
    """One side of a connection.

    Args:
        key: of the job; None where it has none, and then nothing is proven.
        serves: this is the side that was connected to.

    Attributes:
        greeting: to be sent first.
        is_ready: the other side has greeted, so frames can be made.
        is_proven: a frame of the other side was received and is right.
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
        """Take what was received, in pieces of any size; returns what is complete.

        Raises:
            BadPeer: the other side is no member of this job. Nothing after that is to be read.
        """
        self._received += data
        found: list[Packed] = []
        if not self.is_ready and not self._greeted():
            return found
        while (packed := self._next()) is not None:
            found.append(packed)
        return found

    def _greeted(self) -> bool:
        magic = self.greeting[:4]
        if self._received[:4] != magic[: len(self._received)]:
            other = self._received[:3] == magic[:3]
            raise BadPeer(
                "only one side has the job's key" if other else "it does not speak our protocol"
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
        """The bytes of a message; only when the other side has greeted."""
        assert self.is_ready
        head = _HEAD.pack(packed.compressed, len(packed.data))
        return head + self._mac(head, packed.data, by_server=self._serves) + packed.data

    def _mac(self, head: bytes, data: bytes, *, by_server: bool) -> bytes:
        if self._key is None:
            return b""
        count = self._counts[by_server]
        self._counts[by_server] += 1
        proof = hmac.new(self._session, struct.pack(">?Q", by_server, count) + head, "sha256")
        proof.update(data)
        return proof.digest()
