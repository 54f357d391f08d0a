"""What the tasks of one phase share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import attrs

from pairun.module import Module
from pairun.plan import Late, Peers, Task
from pairun.secrets.vault import Vault
from pairun.volume.journal import Emit

Resolve = Callable[[Late, Mapping[str, Any], Mapping[str, str]], Any]
"""Resolves a late value from the environment and the results so far."""


@attrs.define(kw_only=True)
class Shared:
    """What the tasks of one phase share.

    Attributes:
        load: returns the class of a module name.
        resolve: resolves late values; the executor does not import `pairun.playbook`.
        emit: takes every event (`pairun.volume.journal` lists them, and ``output``).
        vault: masks secrets in events.
        env: the environment of the tasks, with the exports of ended tasks.
        peers: the other instances of the job, or None if each runs everything itself.
        results: of ended tasks, by id.
        exports: the variables that ended tasks exported; None removes one.
        registered: the exit handlers so far.
        hidden: the secrets that modules have learned.
        on_hide: called when there are more secrets.
        stop_signal: the first stop signal.
    """

    load: Callable[[str], type[Module]]
    resolve: Resolve
    emit: Emit
    vault: Vault
    env: dict[str, str]
    pai_dir: str
    peers: Callable[[], Peers | None] = lambda: None
    results: dict[str, dict[str, Any]] = attrs.field(factory=dict)
    exports: dict[str, str | None] = attrs.field(factory=dict)
    registered: list[Task] = attrs.field(factory=list)
    hidden: list[str] = attrs.field(factory=list)
    on_hide: Callable[[], None] = lambda: None
    stop_signal: int | None = None

    def hide(self, texts: Iterable[str]) -> None:
        """Mask secrets that a module has learned, from now on."""
        new = sorted(set(texts) - set(self.vault.texts) - set(self.hidden))
        if new:
            self.vault.add(new)
            self.hidden += new
            self.on_hide()

    def export(self, variables: Mapping[str, str | None]) -> None:
        """Add exported variables to the environment of the next tasks."""
        self.exports.update(variables)
        for name, value in variables.items():
            if value is None:
                self.env.pop(name, None)
            else:
                self.env[name] = value
