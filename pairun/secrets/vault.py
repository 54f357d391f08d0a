"""The vault: every text that this process hides, and every sink that hides them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pairun.secrets.forms import MASK, RedactedStream, Redactor

__all__ = ["MASK", "Vault"]


class Vault:
    """Knows what one process hides, and masks it in texts, bytes, streams and records.

    A process has one vault. Its entry makes it, fills it as secrets become known, and passes it
    to whatever writes. A stream that exists already hides what is added later.

    Args:
        texts: the plain values; values under `forms.MIN_BYTES` bytes are not masked.
    """

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._redactor = Redactor(texts)

    def __bool__(self) -> bool:
        """Whether there is anything to mask."""
        return bool(self._redactor)

    @property
    def secrets(self) -> tuple[str, ...]:
        """The values that are masked, sorted."""
        return self._redactor.secrets

    def add(self, texts: Iterable[str]) -> None:
        """Hide more texts from now on."""
        new = set(texts).difference(self._redactor.secrets)
        if new:
            self._redactor = Redactor([*self._redactor.secrets, *new])

    def data(self, data: bytes) -> bytes:
        """Mask a complete piece of bytes."""
        return self._redactor.redact(data)

    def text(self, text: str) -> str:
        """Mask a complete text, as the reader gets it: after it is cut, wrapped or cleaned."""
        return self._redactor.text(text)

    def stream(self) -> RedactedStream:
        """A filter for bytes that arrive in pieces."""
        return self._redactor.stream()

    def record(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """Mask the values of a record, at any depth; its keys stay as they are.

        Mask a record before it is serialised: a secret that equals a key must not break the record.
        """
        return {key: self.value(each) for key, each in record.items()}

    def value(self, value: Any) -> Any:
        """Mask every text in plain data; keys of mappings stay as they are."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return self.record(value)
        if isinstance(value, list | tuple):
            return [self.value(each) for each in value]
        return value
