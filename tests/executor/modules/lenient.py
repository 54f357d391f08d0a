"""A check module that says which kinds of its failures do no harm."""

from __future__ import annotations

import pairun.module as api
from pairun.module import CheckModule, Context, FailureKind, arg, define


@define
class Lenient(CheckModule):
    """Run a piece of Python; failures of the kinds in ``kinds`` are harmless."""

    example = "lenient: {code: pass}"

    code: str = arg("What to do; it sees `ctx` and all of pairun.module.", default="")
    kinds: list[str] = arg("The kinds that are harmless.", factory=lambda: ["transient", "timeout"])

    @property
    def harmless(self) -> frozenset[FailureKind]:
        """The kinds that the task names."""
        return frozenset(self.kinds)  # type: ignore[arg-type]

    def check(self, ctx: Context) -> None:
        """Do it."""
        exec(self.code, {**vars(api), "ctx": ctx})
