"""Reads Pods from what ``kubectl describe pods`` and ``kubectl get pods`` print for people.

The text becomes the same data as ``-o json``, so that a state belongs to its Pod's rank. Source:
kubectl's ``describe`` and its printers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pairun.incident.clusterobjects import ClusterObject

_DESCRIBED = re.compile(r"^Name: {2,}(?P<name>\S+) *\nNamespace: ", re.MULTILINE)
_FIELD = re.compile(r"^(?P<key>Node|Status|Reason|Message): +(?P<value>\S.*)$", re.MULTILINE)
_STATE = re.compile(
    r"^ {4}(?P<last>Last )?State: +(?P<kind>Terminated|Waiting|Running) *\n(?P<body>(?: {6,}\S.*\n?)*)",
    re.MULTILINE,
)
_PART = re.compile(
    r"^ {6}(?P<key>Reason|Exit Code|Message|Started|Finished): +(?P<value>\S.*)$", re.MULTILINE
)
_STATED = re.compile(r"^ +(?P<key>Reason|Message|Exit Code): +(?P<value>\S.*)$", re.MULTILINE)
_KEYS = {"Reason": "reason", "Message": "message", "Exit Code": "exitCode"}
_READY = re.compile(
    r"^ {4}Ready: +(?P<ready>True|False) *\n {4}Restart Count: +(?P<count>\d{1,9}) *$", re.MULTILINE
)
_EVENTS = re.compile(r"^Events:", re.MULTILINE)
_HEADER = re.compile(r"^(?:NAMESPACE +)?NAME +READY +STATUS +RESTARTS +AGE\b.*$", re.MULTILINE)
_ROW = re.compile(
    r"(?P<name>[a-z0-9][a-z0-9.-]*) +\d+/\d+ +(?:Init:)?(?P<status>[A-Z]\w+) +\d+(?: \([^)]*\))? +\S+"
    r"(?: +\S+ +(?P<node>[a-z0-9][\w.-]*))?"
)
_ENDED = frozenset(("OOMKilled", "ContainerCannotRun", "StartError", "DeadlineExceeded"))


def described_pods(data: bytes, file: str) -> list[ClusterObject]:
    """The Pods in a text; empty if it is neither of these outputs.

    Args:
        data: the text.
        file: its name for people.
    """
    if b"Namespace:" not in data[:4096] and b" STATUS " not in data[:4096]:
        return []
    text = data.decode("utf-8", "replace")
    return [*_blocks(text, file), *_rows(text, file)]


def _blocks(text: str, file: str) -> Iterator[ClusterObject]:
    starts = [*_DESCRIBED.finditer(text)]
    ends = [*(match.start() for match in starts[1:]), len(text)]
    for match, end in zip(starts, ends, strict=False):
        block = _EVENTS.split(text[match.start() : end], maxsplit=1)[0]
        fields: dict[str, str] = {}
        for field in _FIELD.finditer(block):
            fields.setdefault(field["key"], field["value"].strip())
        status: dict[str, Any] = {
            "phase": fields.get("Status"),
            "reason": fields.get("Reason"),
            "message": fields.get("Message"),
            "containerStatuses": _containers(block),
        }
        node = fields.get("Node", "").partition("/")[0]
        line = text.count("\n", 0, match.start()) + 1
        stated = [
            (_KEYS[m["key"]], " ".join(m["value"].split()), line + block.count("\n", 0, m.start()))
            for m in _STATED.finditer(block)
        ]
        yield _pod(match["name"], node, status, file, line)._replace(stated=tuple(stated))


def _containers(block: str) -> list[dict[str, Any]]:
    containers: list[dict[str, Any]] = []
    for match in _STATE.finditer(block):
        parts: dict[str, Any] = {
            m["key"]: m["value"].strip() for m in _PART.finditer(match["body"])
        }
        state: dict[str, Any] = {"reason": parts.get("Reason"), "message": parts.get("Message")}
        if str(parts.get("Exit Code", "")).isdecimal():
            state |= {
                "exitCode": int(parts["Exit Code"]),
                "finishedAt": _iso(parts.get("Finished", "")),
            }
        if match["kind"] == "Running":
            state = {"startedAt": _iso(parts.get("Started", ""))}
        named = {match["kind"].lower(): state}
        if match["last"] and containers:
            containers[-1]["lastState"] = named
        else:
            containers.append({"state": named})
    readiness = [*_READY.finditer(block)]
    for container, match in zip(containers, readiness, strict=False):
        if len(containers) == len(readiness):
            container |= {"ready": match["ready"] == "True", "restartCount": int(match["count"])}
    return containers


def _rows(text: str, file: str) -> Iterator[ClusterObject]:
    for header in _HEADER.finditer(text):
        number = text.count("\n", 0, header.start()) + 1
        skipped = r"\S+ +" if header[0].startswith("NAMESPACE") else ""
        for row in text[header.end() + 1 :].split("\n"):
            number += 1
            match = re.compile(skipped + _ROW.pattern).match(row)
            if match is None:
                break
            word = match["status"]
            kind = "terminated" if word in _ENDED else "waiting"
            status: dict[str, Any] = {"reason": word, "containerStatuses": []}
            if word == "Completed":
                status = {"phase": "Succeeded"}
            elif word not in ("Evicted", "Error"):
                status = {"containerStatuses": [{"state": {kind: {"reason": word}}}]}
            yield _pod(match["name"], match["node"] or "", status, file, number)


def _pod(name: str, node: str, status: dict[str, Any], file: str, line: int) -> ClusterObject:
    known = "" if node in ("<none>", "none") else node
    data = {"metadata": {"name": name}, "spec": {"nodeName": known}, "status": status}
    return ClusterObject("Pod", data, file, line)


def _iso(text: str) -> str:
    """A time of ``kubectl describe`` (RFC 5322) in ISO 8601; empty if it is none."""
    # imported here: few folders hold such a text
    from email.utils import parsedate_to_datetime

    try:
        return parsedate_to_datetime(text).isoformat()
    except ValueError:
        return ""
