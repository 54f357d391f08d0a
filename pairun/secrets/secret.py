"""The type of a text that is never shown."""

from __future__ import annotations


class Secret:
    """A text that is never shown; only `reveal` returns it."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """The text itself, for code that needs it."""
        return self._text

    def __repr__(self) -> str:
        return "******"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)


def reveal(value: str | Secret) -> str:
    """The text of a value that may be secret."""
    return value.reveal() if isinstance(value, Secret) else value
