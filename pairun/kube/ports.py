"""The numbers of ports that follow from a Pod's identity, so that nobody has to be asked."""

from __future__ import annotations

import hashlib

LABEL = "pairun"
"""The port label that is reserved for the rendezvous."""

PORT_ANNOTATION = "rest-server/port-scheduling-spec"
"""The annotation by which OpenPAI's Pods know which ports they get."""

DEFAULT_RANGE = (15000, 40000)
"""The half-open range of ports where nothing else is said; OpenPAI's value."""

_RENDEZVOUS_RANGE = (15000, 32768)
"""Ends where Linux takes the ports of outgoing connections from (ip_sysctl, ip_local_port_range)."""


def hashed_port(pod_uid: str, label: str, k: int, first: int, end: int) -> int:
    """The number of a Pod's ``k``-th port of a label, in the half-open range given."""
    text = f"[{pod_uid}][{label}][{k}]"
    digest = hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
    parts = (digest[:12], digest[12:24], digest[24:])
    return sum(int(part, 16) for part in parts) % (end - first) + first


def rendezvous_port(pod_uid: str) -> int:
    """The port on which a Pod's rendezvous listens."""
    return hashed_port(pod_uid, LABEL, 0, *_RENDEZVOUS_RANGE)
