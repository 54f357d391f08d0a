"""Tasks that one instance runs for others (``run_on``): how they get its verdict.

An instance that gets none runs the task itself: one Pod must not hold up ten thousand.
"""

from __future__ import annotations

from pairun.contract.results import BadResult, Report, checked_report
from pairun.module import CheckModule, Context, Result, Transient
from pairun.plan import Peers, PeerVerdict
from pairun.secrets.vault import Vault

VERDICT_S = 600.0
"""How long an instance waits for a verdict where the task has no deadline."""

GIVE_S = 5.0
"""How long an instance tries to give its verdict to the others."""


class TakeVerdict(CheckModule):
    """Wait for the verdict of the instance that runs a task.

    Args:
        peers: the instances of the job.
        topic: the verdict's name.
        limit_s: seconds to wait.
    """

    def __init__(self, peers: Peers, topic: str, limit_s: float) -> None:
        self._peers, self._topic, self._limit_s = peers, topic, limit_s

    def check(self, ctx: Context) -> Result:
        """Wait."""
        verdict = self._peers.take(self._topic, self._limit_s)
        if verdict.get("outcome") not in ("ok", "changed", "skipped", "ignored", "failed"):
            raise Transient("that instance cancelled it")
        try:
            report_of(verdict)
        except BadResult as e:
            raise Transient(f"its verdict cannot be used: {e}") from e
        return Result(values=verdict)


class GiveVerdict(CheckModule):
    """Give the verdict on a task to the other instances.

    Args:
        peers: the instances of the job.
        topic: the verdict's name.
        verdict: what a task came to.
    """

    def __init__(self, peers: Peers, topic: str, verdict: PeerVerdict) -> None:
        self._peers, self._topic, self._verdict = peers, topic, verdict

    def check(self, ctx: Context) -> None:
        """Give it."""
        self._peers.give(self._topic, self._verdict, GIVE_S)


def verdict_of(outcome: str, report: Report, by: str, vault: Vault) -> PeerVerdict:
    """What others may know of a task's end: no secret, no exported variable."""
    names = ["message", "values", *(("kind", "fault", "hint") if report.failed else ())]
    fields = {name: vault.value(getattr(report, name)) for name in names}
    return {"outcome": outcome, "by": by, **{k: v for k, v in fields.items() if v is not None}}


def report_of(verdict: PeerVerdict) -> Report:
    """The report of a task that another instance ran.

    Raises:
        BadResult: the verdict has a field that it may not have.
    """
    did = verdict["outcome"]
    fields = {k: verdict[k] for k in ("kind", "fault", "hint", "values") if k in verdict}
    words = verdict.get("message") or {"changed": "done", "ok": "nothing to do"}.get(did, did)
    outcome = {"changed": "ok", "ignored": "failed"}.get(did, did)
    message = f"{verdict.get('by', 'another instance')}: {words}"
    return checked_report({"outcome": outcome, "message": message, **fields})
