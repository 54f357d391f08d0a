"""A state module that leaves a line in a file for every step."""

from __future__ import annotations

import os
from typing import ClassVar

from pairun.module import Context, Result, StateModule, Verdict, arg, define, no_change, will_change


@define
class State(StateModule):
    """Make sure that a file exists."""

    example = "state: {path: /tmp/x}"
    verify: ClassVar[bool] = True

    path: str = arg("The file.")
    holds: bool = arg("Whether `apply` achieves anything.", default=True)

    def probe(self, ctx: Context) -> bool:
        """Whether it is there."""
        self._note("probe")
        return ctx.stat(self.path) is not None

    def plan(self, state: bool) -> Verdict:
        """Compare."""
        return no_change("it is there") if state else will_change("make it")

    def apply(self, ctx: Context) -> Result:
        """Make it."""
        self._note("apply")
        if self.holds:
            ctx.write_file(self.path, b"")
        return Result(values={"path": self.path})

    def _note(self, step: str) -> None:
        with open(f"{self.path}.steps", "a", encoding="utf-8") as f:
            f.write(f"{step} {os.getpid()}\n")
