"""Facts about a Kubernetes node: its conditions and taints in ``kubectl describe node``.

The conditions are from https://kubernetes.io/docs/reference/node/node-status/ and the node problem
detector.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pairun.diagnose.facts.fact import KUBERNETES, LIKELY, STRONG, Fact, Reader
from pairun.diagnose.lines import Line, Log

_CONDITION = re.compile(
    r"^\s*(?P<type>Ready|MemoryPressure|DiskPressure|PIDPressure|NetworkUnavailable|OutOfDisk"
    r"|KernelDeadlock|ReadonlyFilesystem|CorruptDockerOverlay2|Frequent\w+|\w+Problem)\s+"
    r"(?P<state>True|False|Unknown)\s+\w{3}, \d\d .{0,120}?[+-]\d{4}\s+\S.*?[+-]\d{4}\s+(?P<why>\S.*)$"
)
_ROW = re.compile(
    r"^\S+\s+(?P<state>(?:Not)?Ready|Unknown)(?:,SchedulingDisabled)?\s+(?:<none>|[a-z][\w,.-]*)\s+\d+[dhm]"
)
"""A row of ``kubectl get nodes``."""

_TAINT = re.compile(
    r"^\s*Taints:.*\bnode\.kubernetes\.io/(?P<taint>not-ready|unreachable|[a-z]+-pressure"
    r"|network-unavailable|out-of-service):(?:NoSchedule|NoExecute)"
)


def _read(line: Line, _log: Log) -> Sequence[Fact] | None:
    if match := _CONDITION.match(line.text):
        fact = fact_of_condition(match["type"], match["state"], match["why"].strip(), line.at)
        return [] if fact is None else [fact]
    if match := _ROW.match(line.text):
        words = f"the node is {match['state']}"
        is_ready = match["state"] == "Ready"
        return [] if is_ready else [Fact("node_stuck", STRONG, words, KUBERNETES, line.at)]
    if match := _TAINT.match(line.text):
        words = f"the node has the taint {match['taint']}"
        return [Fact("node_stuck", STRONG, words, KUBERNETES, line.at)]
    return None


def fact_of_condition(kind: str, state: str, why: str, at: int = -1) -> Fact | None:
    """The fact that a node's condition states.

    Every condition but ``Ready`` names a problem, which is absent only if it is false.

    Args:
        kind: its type.
        state: ``True``, ``False`` or ``Unknown``.
        why: its reason or message.
        at: offset of its line in the log, in bytes; -1 if it is not from a log.
    """
    if state == ("True" if kind == "Ready" else "False"):
        return None
    weight = STRONG + 2 if kind == "Ready" or state == "True" else LIKELY
    klass = "storage_io_error" if kind == "ReadonlyFilesystem" else "node_stuck"
    words = f"the node's condition {kind} is {state}: {why}"
    return Fact(klass, weight, words, KUBERNETES, at)


NODES = Reader(
    (
        "memorypressure", "diskpressure", "pidpressure", "networkunavailable", "outofdisk", "ready ",
        "kerneldeadlock", "readonlyfilesystem", "corruptdocker", "problem ", "frequent", "taints:",
    ),
    _read,
)  # fmt: skip
