"""A state module whose verdict is what the test says."""

from __future__ import annotations

from typing import Any

import pairun.module as api
from pairun.module import Context, StateModule, Verdict, arg, define


@define
class Judge(StateModule):
    """Return a verdict, whatever it is."""

    example = "judge: {verdict: no_change('x')}"

    verdict: str = arg("A Python expression; it sees all of pairun.module.")

    def probe(self, ctx: Context) -> None:
        """Look at nothing."""

    def apply(self, ctx: Context) -> None:
        """Change nothing."""

    def plan(self, state: None) -> Verdict:
        """Evaluate the expression."""
        verdict: Any = eval(self.verdict, dict(vars(api)))
        made: Verdict = verdict
        return made
