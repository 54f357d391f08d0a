"""A member of a job as 0.1 speaks on the wire, written again from its format.

Greeting: ``PRZ1`` and 16 random bytes. Frame: one byte (1 for zlib), the length (4 bytes, big
endian), HMAC-SHA256, JSON. The HMAC's key is that of the job over both greetings, the server's
first; it covers who sends (1 for the server), a counter of 8 bytes, the frame's head and its data.
"""

from __future__ import annotations

import hmac
import json
import socket
import struct
import zlib
from typing import Any, Self

Message = dict[str, Any]


class OldPeer:
    """One end of a connection.

    Args:
        sock: connected.
        key: of the job.
        serves: whether this end accepted the connection.
    """

    def __init__(self, sock: socket.socket, key: bytes, *, serves: bool) -> None:
        self._sock = sock
        self._serves = serves
        own = b"PRZ1" + b"0123456789abcdef"
        sock.sendall(own)
        theirs = self._read(20)
        self._session = hmac.digest(key, own + theirs if serves else theirs + own, "sha256")
        self._counts = {True: 0, False: 0}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._sock.close()

    def say(self, message: Message) -> None:
        """Send a message."""
        data = json.dumps(message, separators=(",", ":")).encode()
        head = struct.pack(">BI", 0, len(data))
        self._sock.sendall(head + self._mac(head, data, by_server=self._serves) + data)

    def hear(self) -> Message:
        """Receive a message."""
        head = self._read(5)
        compressed, length = struct.unpack(">BI", head)
        mac, data = self._read(32), self._read(length)
        assert mac == self._mac(head, data, by_server=not self._serves)
        message: Message = json.loads(zlib.decompress(data) if compressed else data)
        return message

    def _mac(self, head: bytes, data: bytes, *, by_server: bool) -> bytes:
        count = self._counts[by_server]
        self._counts[by_server] += 1
        text = struct.pack(">?Q", by_server, count) + head + data
        return hmac.digest(self._session, text, "sha256")

    def _read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            part = self._sock.recv(size - len(data))
            assert part, "the connection was closed"
            data += part
        return data
