"""The vault: every text that one process hides, and every filter that hides them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pairun.secrets.masking import MaskedStream
    from pairun.secrets.scanner import Scanner

_ELLIPSIS = "…".encode()
_CUT = re.compile(rb"(\.\.\.|" + _ELLIPSIS + rb")")
"""What stands in a text in place of its end."""

# What finds secrets is imported with the first one: every start of pairun makes a vault.


class Vault:
    """Masks what one process hides, in texts, bytes, streams and records.

    A process has one vault. Its entry makes it, adds secrets as they become known, and passes it
    to whatever writes. A stream that exists already hides what is added later.

    Args:
        texts: the plain values; values under `forms.MIN_BYTES` bytes are not masked.

    Attributes:
        scanner: finds every form of every value; None where there is nothing to hide.
    """

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self.scanner: Scanner | None = None
        self._texts: set[str] = set()
        self._forms: set[bytes] = set()
        self.add(texts)

    def __bool__(self) -> bool:
        """Whether there is anything to hide."""
        return self.scanner is not None

    @property
    def texts(self) -> tuple[str, ...]:
        """The values that are hidden, sorted."""
        return tuple(sorted(self._texts))

    def add(self, texts: Iterable[str]) -> None:
        """Hide more values from now on."""
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
        """Mask a complete text, as its reader gets it: cleaned, cut and wrapped.

        The start of a form is masked, too, where the text was cut after it: before ``...`` or ``…``.
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
        """Mask what a cut has left of a form."""
        if b"..." not in data and _ELLIPSIS not in data:
            return data
        from pairun.secrets.forms import MASK, MIN_BYTES
        from pairun.secrets.masking import mask

        assert self.scanner is not None
        parts = _CUT.split(data)
        # Every other part is a mark.
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

        Keys stay as they are: a secret that equals a key must not break the record.
        """
        return {key: self.value(each) for key, each in record.items()}

    def value(self, value: Any) -> Any:
        """Mask every text in plain data; the keys of mappings stay as they are."""
        if isinstance(value, str):
            return self.text(value)
        if value is None or isinstance(value, int | float):
            # Asking for a mapping costs more, and most values of a record are numbers.
            return value
        if isinstance(value, Mapping):
            return self.record(value)
        if isinstance(value, list | tuple):
            return [self.value(each) for each in value]
        return value
