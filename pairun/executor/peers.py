"""Tasks that one instance runs for the others (``run_on``), and how these get its verdict.

An instance that gets no verdict runs the task itself: one Pod must not block ten thousand.
"""

from __future__ import annotations

from collections.abc import Callable

from pairun.contract.results import BadResult, Report, checked
from pairun.module import CheckModule, Context, Result, Transient
from pairun.plan import Peers, PeerVerdict
from pairun.secrets.vault import Vault

VERDICT_S = 600.0
"""How long an instance waits for a verdict if the task has no deadline, in seconds."""

GIVE_S = 5.0
"""How long an instance tries to send its verdict to the others, in seconds."""


class Exchange(CheckModule):
    """Contacts the other instances in a forked process, so that the loop does not wait."""

    def __init__(self, exchange: Callable[[], Result | None]) -> None:
        self._exchange = exchange

    def check(self, ctx: Context) -> Result | None:
        """Run the exchange."""
        return self._exchange()


def take_verdict(peers: Peers, topic: str, limit_s: float) -> Result:
    """Wait for the verdict of the instance that runs a task.

    Raises:
        Failure: there is no verdict, or an unusable one.
    """
    verdict = peers.take(topic, limit_s)
    if verdict.get("outcome") not in ("ok", "changed", "skipped", "ignored", "failed"):
        raise Transient("that instance cancelled it")
    try:
        report_of(verdict)
    except BadResult as e:
        raise Transient(f"its verdict cannot be used: {e}") from e
    return Result(values=verdict)


def verdict_of(outcome: str, report: Report, by: str, vault: Vault) -> PeerVerdict:
    """What others may get of a task's end: no secret, no exported variable."""
    names = ["message", "values", *(("kind", "fault", "hint") if report.failed else ())]
    fields = {name: vault.value(getattr(report, name)) for name in names}
    return {"outcome": outcome, "by": by, **{k: v for k, v in fields.items() if v is not None}}


def report_of(verdict: PeerVerdict) -> Report:
    """The report of a task that another instance ran.

    Raises:
        BadResult: the verdict has an invalid field.
    """
    outcome = verdict["outcome"]
    fields = {k: verdict[k] for k in ("kind", "fault", "hint", "values") if k in verdict}
    words = verdict.get("message") or {"changed": "done", "ok": "nothing to do"}.get(
        outcome, outcome
    )
    message = f"{verdict.get('by', 'another instance')}: {words}"
    outcome = {"changed": "ok", "ignored": "failed"}.get(outcome, outcome)
    return checked(Report, {"outcome": outcome, "message": message, **fields})
