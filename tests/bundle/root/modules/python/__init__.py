"""A module that an operator could have written: a folder, and only the standard library."""

from __future__ import annotations

import pkgutil

from pairun.module import CheckModule, Context, Result, arg, define

from .running import run


@define
class Python(CheckModule):
    """Run a piece of Python; ``result`` is what it leaves."""

    example = "python: {code: pass}"

    code: str = arg("What to do; it sees `ctx`.")

    def check(self, ctx: Context) -> Result:
        """Do it."""
        before = pkgutil.get_data(__name__, "before.txt")
        assert before is not None
        return Result(values={"result": run(before.decode() + self.code, ctx)})
