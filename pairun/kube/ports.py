"""The ports of a Pod: the annotation that describes them, and their numbers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from pairun.base.foreignjson import parse_json

LABEL = "pairun"
"""The port label reserved for the rendezvous."""

PORT_ANNOTATION = "rest-server/port-scheduling-spec"
"""The annotation with the port plan of OpenPAI's Pods."""

DEFAULT_RANGE = (15000, 40000)
"""The default half-open range of ports; OpenPAI's value."""

MAX_PORTS = 1000
"""The most ports of one Pod. Their numbers are hashes, and of 1,000 in OpenPAI's range two are equal."""

_RENDEZVOUS_RANGE = (15000, 32768)
"""Ends where Linux's ports of outgoing connections start (ip_sysctl, ip_local_port_range)."""


def hashed_port(pod_uid: str, label: str, k: int, first: int, end: int) -> int:
    """The number of a Pod's ``k``-th port of a label, in a half-open range."""
    text = f"[{pod_uid}][{label}][{k}]"
    digest = hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
    parts = (digest[:12], digest[12:24], digest[24:])
    return sum(int(part, 16) for part in parts) % (end - first) + first


def rendezvous_port(pod_uid: str) -> int:
    """The port on which a Pod's rendezvous listens."""
    return hashed_port(pod_uid, LABEL, 0, *_RENDEZVOUS_RANGE)


def port_annotation(counts: Mapping[str, int], port_range: tuple[int, int] = DEFAULT_RANGE) -> str:
    """The text of `PORT_ANNOTATION`, in the format of OpenPAI's REST server.

    Args:
        counts: label to number of ports.
        port_range: half-open.
    """
    labels = {label: {"count": count} for label, count in counts.items()}
    start, end = port_range
    spec = {"schedulePortStart": start, "schedulePortEnd": end, "ports": labels}
    return json.dumps(spec, separators=(",", ":"))


class PortPlan:
    """The content of `PORT_ANNOTATION`: the ports of each Pod of a role.

    OpenPAI's REST server computes the same numbers for its web page, so both must agree.

    Attributes:
        range: half-open; None in the format before OpenPAI 1.0, which lists the numbers.

    Raises:
        ValueError: the annotation is invalid.
    """

    def __init__(self, annotation: Any) -> None:
        self.range: tuple[int, int] | None = None
        try:
            spec = parse_json(annotation)
            is_hashed = {"ports", "schedulePortStart", "schedulePortEnd"} <= spec.keys()
            labels = spec["ports"] if is_hashed else spec
            self._counts = {label: int(entry["count"]) for label, entry in labels.items()}
            if is_hashed:
                self.range = int(spec["schedulePortStart"]), int(spec["schedulePortEnd"])
            else:
                self._starts = {label: int(entry["start"]) for label, entry in labels.items()}
        except (ValueError, KeyError, TypeError, AttributeError) as e:
            raise ValueError(f"the annotation {PORT_ANNOTATION} cannot be read: {e!r}") from e
        if min(self._counts.values(), default=0) < 0 or sum(self._counts.values()) > MAX_PORTS:
            raise ValueError(f"the annotation {PORT_ANNOTATION} has not 0 to {MAX_PORTS} ports")
        if self.range and self.range[1] <= self.range[0]:
            raise ValueError(f"the annotation {PORT_ANNOTATION} has an empty range of ports")

    def of(self, pod_uid: str | None, index: int) -> dict[str, tuple[int, ...]]:
        """The ports of one instance by label; empty if they depend on an unknown Pod.

        Args:
            pod_uid: its Pod's UID, or None if unknown.
            index: its number in its role.
        """
        if self.range is None:
            return {
                label: tuple(range(start, start + count))
                for label, count in self._counts.items()
                for start in (self._starts[label] + count * index,)
            }
        if pod_uid is None:
            return {}
        first, end = self.range
        return {
            label: tuple(hashed_port(pod_uid, label, k, first, end) for k in range(count))
            for label, count in self._counts.items()
        }
