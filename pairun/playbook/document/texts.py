"""Reads files as UTF-8 text with a limited size."""

from __future__ import annotations

import os

from pairun.errors import PairunError, Place, Source

MAX_DOCUMENT_BYTES = 4 * 1024 * 1024


def load_bytes(path: str, limit: int = MAX_DOCUMENT_BYTES) -> bytes:
    """The bytes of a file (``-``: standard input), up to a limit.

    Args:
        limit: the largest size allowed, in bytes; of a larger file one more byte is returned.

    Raises:
        PairunError: it cannot be opened or read.
    """
    try:
        if path == "-":
            import sys

            return sys.stdin.buffer.read(limit + 1)
        with open(path, "rb") as f:
            # Allocating the whole limit would cost more memory than most files need.
            size = min(os.fstat(f.fileno()).st_size, limit) + 1
            data = f.read(size)
            return data if len(data) < size else data + f.read(limit + 1 - size)
    except OSError as e:
        raise PairunError.of("PR108", f"{path} cannot be read: {e.strerror}") from e


def decode(data: bytes, file: str, layer: str) -> Source:
    """Decode a text that must be UTF-8 (a byte order mark is allowed).

    Raises:
        PairunError: the text is too large, or not UTF-8.
    """
    source = Source(file, layer, data[:MAX_DOCUMENT_BYTES].decode("utf-8", "replace"))
    if len(data) > MAX_DOCUMENT_BYTES:
        raise PairunError.of("PR103", f"{file} is larger than 4 MiB", Place(source, 1, 1))
    try:
        return Source(file, layer, data.decode("utf-8-sig"))
    except UnicodeDecodeError as e:
        before = data[: e.start]
        line = before.count(b"\n") + 1
        column = len(before[before.rfind(b"\n") + 1 :].decode("utf-8", "replace")) + 1
        message = f"{file} is not UTF-8: byte 0x{data[e.start]:02x}"
        hint = "save the file as UTF-8"
        raise PairunError.of("PR102", message, Place(source, line, column), hint) from e
