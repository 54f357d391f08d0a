"""Facts in the rows of ``kubectl get pods``, with the name of the row's Pod."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pairun.diagnose.facts.fact import HINT, KUBERNETES, PREVIOUS_LOG, Fact, Reader, with_pod
from pairun.diagnose.facts.pods import REASONS, fact_of_reason
from pairun.diagnose.lines import Line, Log

_ROW = re.compile(
    r"^(?:(?P<namespace>[a-z0-9][\w.-]*)\s+)?(?P<pod>\S+)\s+\d+/\d+\s+(?P<init>Init:)?(?P<status>[A-Z]\w+)\s+\d+(?:\s|$)"
    r"|^\S+\s+(?P<older>\S+)\s+(?P<evicted>Evicted)\s+\S+\s+Pod The node"
)
_ROUTINE = frozenset(("Running", "Completed", "ContainerCreating", "PodInitializing"))
_TABLE_ROWS = 200
"""The maximum number of further rows that are counted."""


def _read(line: Line, log: Log) -> Sequence[Fact] | None:
    row = _ROW.match(line.text)
    if row is None:
        return None
    status = row["status"] or row["evicted"]
    if status in _ROUTINE:
        return []
    fact = _fact_of(status, line.at)
    if fact is None:
        return None
    if row["init"]:
        words = fact.words.replace("the container", "an init container").replace("(", "(Init:")
        advice = fact.advice.replace("kubectl logs", "kubectl logs --all-containers")
        fact = fact._replace(words=words, advice=advice)
    pod = row["pod"] or row["older"]
    named = with_pod(fact, pod, row["namespace"] or "")
    others = sum(_status_of(after.text) == status for after in log.after(line.at, _TABLE_ROWS))
    if others:
        pods = f"{pod} and {others} other Pod{'s' * (others > 1)}"
        named = named._replace(words=f"{pods}: {fact.words}")
    return [named]


def _status_of(text: str) -> str:
    row = _ROW.match(text)
    return (row["status"] or row["evicted"]) if row else ""


def _fact_of(status: str, at: int) -> Fact | None:
    if status == "Pending":
        return Fact("unschedulable", HINT, "the Pod waits for a node", KUBERNETES, at)
    if status in ("Error", "Failed"):
        words, advice = f"the container failed ({status})", PREVIOUS_LOG.replace(" --previous", "")
        return Fact("child_failed", HINT + 2, words, KUBERNETES, at, advice=advice)
    return fact_of_reason(status, at)


POD_ROWS = Reader(
    (
        *(name.lower() for name in REASONS),
        "  error  ", "failed", "pending", "running", "contain", "init:", "evicted",
    ),
    _read,
)  # fmt: skip
