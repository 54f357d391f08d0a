"""A module that an operator could have written: not built in, and only the standard library."""

from __future__ import annotations

from pairun.module import CheckModule, Context, Result, arg, define


@define
class Python(CheckModule):
    """Run a piece of Python; ``result`` is what it leaves."""

    example = "python: {code: pass}"

    code: str = arg("What to do; it sees `ctx`.")

    def check(self, ctx: Context) -> Result:
        """Do it."""
        names: dict[str, object] = {"ctx": ctx, "result": ""}
        exec(self.code, names)
        return Result(values={"result": str(names["result"])})
