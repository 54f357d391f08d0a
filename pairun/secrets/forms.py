"""Secrets leave pairun nowhere: a byte filter for every sink.

A value is recognised raw, base64-encoded in its three alignments, URL-encoded and JSON-escaped,
also when it is split over several writes. Values under `MIN_BYTES` are not redacted: masking
every ``1`` would destroy the log and hide nothing.
"""

from __future__ import annotations

import base64
import json
import re
import sys
from collections.abc import Iterable, Iterator
from typing import Protocol

MASK = "******"
MIN_BYTES = 4


class Scanner(Protocol):
    """Finds forms of secrets in bytes; made of the forms, the longest first, and a mask."""

    def scan(self, data: bytes, final: bool, /) -> tuple[bytes | None, int]:
        """Mask what is found.

        Args:
            data: where to look.
            final: nothing comes after it.

        Returns:
            The masked bytes, or None where nothing was found, and how many bytes of ``data`` they
            stand for; the others may begin a secret, and belong before the next piece.
        """
        ...


class PythonScanner:
    """A `Scanner` for where the one in C is not linked in.

    One search per form is far faster than an expression with all of them: each runs at the speed
    of C, and skips what cannot match.
    """

    def __init__(self, forms: list[bytes], mask: bytes) -> None:
        self._forms = forms
        self._mask = mask
        self._firsts = {form[:1] for form in forms}
        self._pairs = {form[at : at + 2] for form in forms for at in range(len(form) - 2)}

    def scan(self, data: bytes, final: bool, /) -> tuple[bytes | None, int]:
        """As `Scanner` says."""
        end = len(data) if final else len(data) - self._held(data)
        out, position = [], 0
        for start, size in self._found(data):
            if start >= end:
                break
            # the first of those that overlap, and of those at one place the longest
            if start >= position:
                out += [data[position:start], self._mask]
                position = start - size
        if not out:
            return None, end
        end = max(end, position)
        return b"".join((*out, data[position:end])), end

    def _found(self, data: bytes) -> list[tuple[int, int]]:
        """Every place of every form with its size below zero, in the order in which they count."""
        found = []
        for form in self._forms:
            at = data.find(form)
            while at >= 0:
                found.append((at, -len(form)))
                at = data.find(form, at + 1)
        found.sort()
        return found

    def _held(self, data: bytes) -> int:
        """How many bytes at the end may be the start of a form."""
        held = int(data[-1:] in self._firsts)
        last = data[-2:]
        if last not in self._pairs:
            return held
        for form in self._forms:
            # of each form the longest start
            at = form.rfind(last, 0, len(form) - 1)
            while at >= 0 and at + 2 > held:
                if data.endswith(form[: at + 2]):
                    held = at + 2
                    break
                at = form.rfind(last, 0, at + 1)
        return held


def _scanner(forms: list[bytes], mask: bytes) -> Scanner:
    if "_pairun_scan" in sys.builtin_module_names:
        import _pairun_scan  # type: ignore[import-not-found]

        scanner: Scanner = _pairun_scan.Scanner(forms, mask)
        return scanner
    return PythonScanner(forms, mask)


class Redactor:
    """Replaces every form of the given secrets by `MASK`.

    Args:
        secrets: the plain values; ones under `MIN_BYTES` bytes of UTF-8 are left out.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self.secrets = tuple(
            sorted({s for s in secrets if len(s.encode("utf-8", "surrogateescape")) >= MIN_BYTES})
        )
        forms = sorted({f for s in self.secrets for f in _forms(s)}, key=len, reverse=True)
        self.scanner = _scanner(forms, MASK.encode()) if forms else None

    def __bool__(self) -> bool:
        return self.scanner is not None

    def redact(self, data: bytes) -> bytes:
        """Redact a complete piece of data."""
        if self.scanner is None:
            return data
        out, _ = self.scanner.scan(data, True)
        return data if out is None else out

    def text(self, text: str) -> str:
        """Redact a complete text."""
        if self.scanner is None:
            return text
        try:
            data, errors = text.encode("utf-8", "surrogateescape"), "surrogateescape"
        except UnicodeEncodeError:
            # a surrogate that stands for no byte, as "\\ud800" in JSON
            data, errors = text.encode("utf-8", "surrogatepass"), "surrogatepass"
        return self.redact(data).decode("utf-8", errors)

    def stream(self) -> RedactedStream:
        """A filter for data that comes in pieces."""
        return RedactedStream(self)


class RedactedStream:
    """Redacts a stream: bytes that may begin a secret wait for the next piece."""

    def __init__(self, redactor: Redactor) -> None:
        self._scanner = redactor.scanner
        self._tail = b""

    def feed(self, data: bytes) -> bytes:
        """Take the next piece, return what may be written now."""
        if self._scanner is None:
            return data
        # What is held back is unredacted, so that a longer form may still swallow it whole.
        data = self._tail + data
        out, size = self._scanner.scan(data, False)
        self._tail = data[size:]
        # no copy where there is nothing to mask
        return data[:size] if out is None else out

    def close(self) -> bytes:
        """The rest."""
        tail, self._tail = self._tail, b""
        if self._scanner is None:
            return tail
        out, _ = self._scanner.scan(tail, True)
        return tail if out is None else out


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
    # Heavy, and needed only where there are secrets.
    from urllib.parse import quote, quote_plus

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
