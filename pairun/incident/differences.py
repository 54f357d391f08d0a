"""Finds the rank whose collective differs from that of all other ranks.

With ``TORCH_DISTRIBUTED_DEBUG=DETAIL`` each rank compares its collective with those of the others, and names
the first one that differs. All ranks but one so name the same rank; that one names some other rank.
Source: torch/csrc/distributed/c10d/ProcessGroupWrapper.cpp, ``verify_tensors``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from pairun.diagnose.lines import Log
from pairun.incident.linesearch import matches_near

RULE = "collectives-differ"
"""The rule for what each rank then reports: it does not show which rank is wrong."""

_LEAST = 2
"""How many ranks must name a rank: of two ranks that differ, either may be wrong."""

_DIFFERS = re.compile(
    rb"Detected mismatch between collectives on ranks\. Rank (?P<rank>\d{1,6}) is running [^\n]{1,1500}?"
    rb"\bbut Rank (?P<other>\d{1,6}) is running"
)


class Difference(NamedTuple):
    """Two ranks with different collectives.

    Attributes:
        rank: the rank that reports it.
        other: the rank that it names.
    """

    rank: int
    other: int


def differences_in(log: Log) -> tuple[Difference, ...]:
    """The differences that a log reports."""
    found = matches_near(_DIFFERS, b"Detected mismatch", log.data)
    return tuple(dict.fromkeys(Difference(int(m["rank"]), int(m["other"])) for m in found))


def differing_rank(differences: Iterable[Difference]) -> int | None:
    """The rank that all others name; None if they name different ones.

    Args:
        differences: that all ranks report.
    """
    named: dict[int, set[int]] = {}
    for each in differences:
        named.setdefault(each.other, set()).add(each.rank)
    everyone = set().union(*named.values())
    ranks = [
        rank for rank, by in named.items() if len(by) >= _LEAST and everyone - {rank} == by - {rank}
    ]
    return ranks[0] if len(ranks) == 1 else None
