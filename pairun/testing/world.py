"""The common part of the fake and the real world."""

from __future__ import annotations

import abc
from collections.abc import Hashable, Mapping
from typing import Any

from pairun.module import Context
from pairun.testing.script import Call, Script


class World(abc.ABC):
    """The world in which a test runs a module.

    Attributes:
        ctx: the context for the module.
        folder: the path that replaces ``{tmp}`` in a table.
        pai_dir: the shared volume.
        log: the lines that the module logged.
    """

    ctx: Context
    folder: str
    pai_dir: str
    log: list[str]
    script: Script

    @property
    def calls(self) -> list[Call]:
        """Every call of a context method, in order."""
        return self.script.calls

    @property
    def changes(self) -> list[str]:
        """The names of the methods that changed something, in order; without ``log``."""
        quiet = {"log", "progress", "sleep"}
        effects = Context.effects()
        names = [call.method for call in self.calls]
        return [name for name in names if effects[name].changes and name not in quiet]

    @abc.abstractmethod
    def put(self, path: str, text: str | None) -> None:
        """Make a file, or a directory if the text is None; makes parents."""

    @abc.abstractmethod
    def text(self, path: str) -> str | None:
        """The text of a file; None if there is no file."""

    @abc.abstractmethod
    def snapshot(self) -> Mapping[str, Hashable]:
        """Every path with properties that change when the path changes."""

    def fill(self, value: Any) -> Any:
        """A value with ``{tmp}`` replaced by the folder in every text."""
        if isinstance(value, str):
            return value.replace("{tmp}", self.folder)
        if isinstance(value, Mapping):
            return {name: self.fill(inner) for name, inner in value.items()}
        return [self.fill(inner) for inner in value] if isinstance(value, list) else value
