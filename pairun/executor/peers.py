"""Tasks that one instance runs for others (``run_on``): who runs them, how the others hear of it.

Where the verdict does not come, an instance runs the task itself: what one Pod cannot tell must
not hold up ten thousand.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pairun.module import CheckModule, Context, Result, Transient
from pairun.plan import Peers, PeerVerdict
from pairun.secrets.vault import Vault

VERDICT_S = 600.0
"""How long a verdict is waited for where the task has no deadline."""

TELL_S = 5.0
"""How long an instance tries to tell its verdict."""


class Awaiting(CheckModule):
    """Wait for the verdict of the instance that runs a task.

    Args:
        peers: where it is told.
        topic: under which name.
        limit_s: how long it may take.
    """

    def __init__(self, peers: Peers, topic: str, limit_s: float) -> None:
        self._peers, self._topic, self._limit_s = peers, topic, limit_s

    def check(self, ctx: Context) -> Result:
        """Wait."""
        verdict = self._peers.take(self._topic, self._limit_s)
        if verdict.get("outcome") not in ("ok", "changed", "skipped", "ignored", "failed"):
            raise Transient("the instance that runs it gave up")
        return Result(values=verdict)


class Telling(CheckModule):
    """Tell the verdict on a task.

    Args:
        peers: who hear it.
        topic: under which name.
        verdict: what to tell.
    """

    def __init__(self, peers: Peers, topic: str, verdict: PeerVerdict) -> None:
        self._peers, self._topic, self._verdict = peers, topic, verdict

    def check(self, ctx: Context) -> None:
        """Tell it."""
        self._peers.give(self._topic, self._verdict, TELL_S)


def verdict_of(outcome: str, report: Mapping[str, Any], by: str, vault: Vault) -> PeerVerdict:
    """What others may know of a task's end: no secret, no exported variable."""
    kept = ("kind", "fault", "message", "hint", "values")
    said = {name: _masked(report[name], vault) for name in kept if report.get(name) is not None}
    return {"outcome": outcome, "by": by, **said}


def adopted(verdict: PeerVerdict) -> dict[str, Any]:
    """The report of a task that another instance ran."""
    did = verdict["outcome"]
    failed = did in ("failed", "ignored")
    outcome = "failed" if failed else "skipped" if did == "skipped" else "ok"
    words = verdict.get("message") or {"changed": "done", "ok": "nothing to do"}.get(did, did)
    report: dict[str, Any] = {
        "outcome": outcome,
        "message": f"{verdict.get('by', 'another instance')}: {words}",
    }
    if failed:
        report |= {
            "kind": verdict.get("kind", "internal"),
            "fault": verdict.get("fault", "unknown"),
        }
        report["hint"] = verdict.get("hint")
    return {**report, "values": verdict.get("values", {})}


def _masked(value: Any, vault: Vault) -> Any:
    if isinstance(value, str):
        return vault.text(value)
    if isinstance(value, Mapping):
        return {k: _masked(v, vault) for k, v in value.items()}
    return [_masked(v, vault) for v in value] if isinstance(value, list | tuple) else value
