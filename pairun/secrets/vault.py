"""The vault: every secret text of one process, and the filters that mask them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pairun.secrets.masking import MaskedStream
    from pairun.secrets.scanner import Scanner

_ELLIPSIS = "…".encode()
_CUT = re.compile(rb"(\.\.\.|" + _ELLIPSIS + rb")")
"""Marks where a text was cut."""

RELEASE_S = 1.0
"""After so many seconds without output a stream can be asked for the bytes that wait in it."""

# Every start of pairun makes a vault, so the scanner is imported with the first secret.


class Vault:
    """Masks a process's secrets in texts, bytes, streams and records.

    A process has one vault. Its entry point creates it, adds secrets as they become known, and
    passes it to all code that writes. Existing streams also mask secrets that are added later.

    Args:
        texts: the plain values; values under `forms.MIN_BYTES` bytes are not masked.

    Attributes:
        scanner: finds every form of every value; None if there are no secrets.
    """

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self.scanner: Scanner | None = None
        self._texts: set[str] = set()
        self._forms: set[bytes] = set()
        self.add(texts)

    def __bool__(self) -> bool:
        """Whether there are secrets to mask."""
        return self.scanner is not None

    @property
    def texts(self) -> tuple[str, ...]:
        """The masked values, sorted."""
        return tuple(sorted(self._texts))

    def add(self, texts: Iterable[str]) -> None:
        """Mask more values from now on."""
        new = set(texts) - self._texts
        if not new:
            return
        from pairun.secrets.forms import forms_of
        from pairun.secrets.scanner import make_scanner

        forms = set[bytes]()
        for text in new:
            if of_text := forms_of(text):
                self._texts.add(text)
                forms |= of_text
        if not forms <= self._forms:
            self._forms |= forms
            self.scanner = make_scanner(self._forms)

    def data(self, data: bytes) -> bytes:
        """Mask complete bytes."""
        if self.scanner is None:
            return data
        from pairun.secrets.masking import mask

        out, _ = mask(self.scanner, data, final=True)
        return data if out is None else out

    def text(self, text: str) -> str:
        """Mask a complete text in its final form: cleaned, cut and wrapped.

        It also masks the start of a form if the text was cut after it: before ``...`` or ``…``.
        """
        if self.scanner is None:
            return text
        from pairun.secrets.forms import encoded

        data = encoded(text)
        out = self._without_starts(self.data(data))
        if out == data:
            return text
        try:
            text.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            return out.decode("utf-8", "surrogatepass")
        return out.decode("utf-8", "surrogateescape")

    def _without_starts(self, data: bytes) -> bytes:
        """Mask what remains of a form after a cut."""
        if b"..." not in data and _ELLIPSIS not in data:
            return data
        from pairun.secrets.forms import MASK, MIN_BYTES
        from pairun.secrets.masking import mask

        assert self.scanner is not None
        parts = _CUT.split(data)
        # Every second part is a mark.
        for n in range(0, len(parts) - 1, 2):
            _, end = mask(self.scanner, parts[n], final=False)
            if len(parts[n]) - end >= MIN_BYTES:
                parts[n] = parts[n][:end] + MASK.encode()
        return b"".join(parts)

    def stream(self) -> MaskedStream:
        """A filter for bytes that arrive in pieces."""
        from pairun.secrets.masking import MaskedStream

        return MaskedStream(self)

    def record(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """Mask the values of a record at any depth, before it is serialised.

        Keys do not change: a secret that equals a key must not break the record.
        """
        return {key: self.value(each) for key, each in record.items()}

    def value(self, value: Any) -> Any:
        """Mask every text in plain data; the keys of mappings do not change."""
        if isinstance(value, str):
            return self.text(value)
        if value is None or isinstance(value, int | float):
            # Skip the slower check for a mapping, because most values of a record are numbers.
            return value
        if isinstance(value, Mapping):
            return self.record(value)
        if isinstance(value, list | tuple):
            return [self.value(each) for each in value]
        return value
