"""A check module that does what the test says."""

from __future__ import annotations

from typing import Any

import pairun.module as api
from pairun.module import CheckModule, Context, Result, arg, define


@define
class Look(CheckModule):
    """Run a piece of Python; ``result`` is what it leaves."""

    example = "look: {code: pass}"

    code: str = arg("What to do; it sees `ctx` and all of pairun.module.", default="")
    number: int = arg("Anything.", default=0)

    def check(self, ctx: Context) -> Result | None:
        """Do it."""
        scope: dict[str, Any] = {**vars(api), "ctx": ctx, "number": self.number, "result": None}
        exec(self.code, scope)
        made: Result | None = scope["result"]
        return made
