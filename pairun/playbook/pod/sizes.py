"""Warns of sizes in a Pod's settings that most likely lack a unit."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from pairun.errors import Problem
from pairun.playbook.document.reading import Node
from pairun.playbook.document.scalars import js_text
from pairun.playbook.pod.bounds import quantity

_SECTIONS = ("resources.limits", "resources.requests", "init_resources.limits",
             "init_resources.requests")  # fmt: skip
_LEAST = 2**20
"""Bytes; Docker's default for /dev/shm is 64 MiB, and no container runs in 1 MiB of memory."""
_MOST_GI = 128
"""A number above this one more likely means MiB."""


def size_warnings(values: Mapping[str, Node]) -> Iterator[Problem]:
    """A warning for each size of /dev/shm or memory below 1 MiB; 0 means no limit.

    Args:
        values: the settings by the key in the table.
    """
    sizes = {"shm": values.get("shm")}
    sizes |= {f"{s}.memory": values[s].get("memory") for s in _SECTIONS if s in values}
    for key, node in sizes.items():
        if node is None or not 0 < (quantity(node.value) or 0) < _LEAST:
            continue
        shown = js_text(node.value)
        yield Problem(
            "PR933",
            f"'pod.{key}' is {shown}, which is less than 1 MiB",
            node.key or node.place,
            f"{_meant(shown)}a size without a unit is in bytes",
            "warning",
        )


def _meant(shown: str) -> str:
    whole = re.match(r"[0-9]+", shown)
    if whole is None:
        return ""
    unit = "Gi" if int(whole[0]) <= _MOST_GI else "Mi"
    return f"did you mean '{whole[0]}{unit}'? "
