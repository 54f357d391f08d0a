"""Secrets leave pairun nowhere: a byte filter for every sink.

A value is recognised raw, base64-encoded in its three alignments, URL-encoded and JSON-escaped,
also when it is split over several writes. Values under `MIN_BYTES` are not redacted: masking
every ``1`` would destroy the log and hide nothing.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator
from urllib.parse import quote, quote_plus

MASK = "******"
MIN_BYTES = 4


class Redactor:
    """Replaces every form of the given secrets by `MASK`.

    Args:
        secrets: the plain values; ones under `MIN_BYTES` bytes of UTF-8 are left out.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self.secrets = tuple(sorted({s for s in secrets if len(s.encode()) >= MIN_BYTES}))
        forms = sorted({f for s in self.secrets for f in _forms(s)}, key=len, reverse=True)
        self._pattern = re.compile(b"|".join(map(re.escape, forms))) if forms else None
        self._forms = forms

    def __bool__(self) -> bool:
        return self._pattern is not None

    def redact(self, data: bytes) -> bytes:
        """Redact a complete piece of data."""
        return self._pattern.sub(MASK.encode(), data) if self._pattern else data

    def text(self, text: str) -> str:
        """Redact a complete text."""
        if not self._pattern:
            return text
        return self.redact(text.encode("utf-8", "surrogateescape")).decode(
            "utf-8", "surrogateescape"
        )

    def stream(self) -> RedactedStream:
        """A filter for data that comes in pieces."""
        return RedactedStream(self)

    def held(self, data: bytes) -> int:
        """How many bytes at the end of ``data`` may be the start of a secret."""
        held = 0
        for form in self._forms:
            tail = data[-(len(form) - 1) :]
            at = tail.find(form[:1])
            while at >= 0:
                if form.startswith(tail[at:]):
                    held = max(held, len(tail) - at)
                    break
                at = tail.find(form[:1], at + 1)
        return held


class RedactedStream:
    """Redacts a stream: bytes that may begin a secret wait for the next piece."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._tail = b""

    def feed(self, data: bytes) -> bytes:
        """Take the next piece, return what may be written now."""
        if not self._redactor:
            return data
        # What is held back is unredacted, so that a longer form may still swallow it whole.
        data = self._tail + data
        held = self._redactor.held(data)
        out = _redact_up_to(self._redactor, data, len(data) - held)
        self._tail = data[out[1] :]
        return out[0]

    def close(self) -> bytes:
        """The rest."""
        tail, self._tail = self._tail, b""
        return self._redactor.redact(tail)


def _redact_up_to(redactor: Redactor, data: bytes, end: int) -> tuple[bytes, int]:
    """Redact ``data[:end]``, including a match that reaches past ``end``; say where it stopped."""
    pattern = redactor._pattern
    assert pattern is not None
    out, position = [], 0
    for match in pattern.finditer(data):
        if match.start() >= end:
            break
        out += [data[position : match.start()], MASK.encode()]
        position = match.end()
    if position < end:
        out.append(data[position:end])
        position = end
    return b"".join(out), position


def _forms(secret: str) -> Iterator[bytes]:
    """Every way in which ``secret`` may appear in an output."""
    yield from _encodings(secret)
    # A key file is printed line by line; each line of some length gives it away.
    lines = [line.strip() for line in secret.splitlines()]
    if len(lines) > 1:
        for line in lines:
            if len(line) >= 16:
                yield from _encodings(line)


def _encodings(secret: str) -> Iterator[bytes]:
    raw = secret.encode("utf-8", "surrogateescape")
    yield raw
    for ascii_only in (True, False):
        escaped = json.dumps(secret, ensure_ascii=ascii_only)[1:-1]
        # Go's encoder escapes what HTML could misread.
        for_html = escaped.replace("<", r"\u003c").replace(">", r"\u003e").replace("&", r"\u0026")
        yield from (e.encode("utf-8", "surrogateescape") for e in {escaped, for_html})
    # RFC 3986, paths, forms, and JavaScript's encodeURIComponent
    for encoded in (quote(raw, safe=""), quote(raw), quote_plus(raw), quote(raw, safe="!'()*")):
        yield encoded.encode()
        yield re.sub(r"%[0-9A-F]{2}", lambda m: m.group().lower(), encoded).encode()
    for shift in range(3):
        # Only the characters that depend on nothing but the secret.
        encoded64 = base64.b64encode(bytes(shift) + raw)
        inner = encoded64[(shift * 8 + 5) // 6 : (shift + len(raw)) * 8 // 6]
        if len(inner) >= MIN_BYTES:
            yield inner
            yield inner.translate(bytes.maketrans(b"+/", b"-_"))
