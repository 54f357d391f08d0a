"""Summarizes many instances: per role and task, the distribution of begins and durations."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from pairun.report.journal.blame import COMMAND
from pairun.report.journal.pastinstances import InstancePast, alike
from pairun.report.journal.records import describe
from pairun.report.page.lanes import role_of

MOST_LANES = 300
"""Up to this many instances get a lane each; of more, only notable ones do."""

MOST_OUTSTANDING = 150
"""How many instances get a lane if there are more than `MOST_LANES`."""

MOST_ALIKE = 10
"""How many of these lanes instances with the same result get."""

QUANTILES = (0.0, 0.1, 0.5, 0.9, 1.0)


def outstanding(instances: Sequence[InstancePast], first: str | None) -> list[InstancePast]:
    """Select the instances that get a lane if there are too many for all.

    Args:
        instances: all instances.
        first: the label of the instance that failed first.

    Returns:
        The instance that failed first, then the slowest ones of each group with the same result.
    """
    chosen = [i for i in instances if i.label == first]
    for group in alike(instances):
        chosen += [i for i in group if i.label != first][:MOST_ALIKE]
    return chosen[:MOST_OUTSTANDING]


def bands(instances: Iterable[InstancePast], zero: float) -> list[dict[str, Any]]:
    """Per role, phase and task: outcomes, and quantiles of begins, ends and durations in seconds.

    Args:
        instances: all instances.
        zero: the origin of the page's time axis, in seconds since the epoch.
    """
    spans: dict[tuple[str, str, str], list[tuple[float, float]]] = {}
    outcomes: dict[tuple[str, str, str], Counter[str]] = {}
    for instance in instances:
        shift_s = instance.began - zero
        for phase in instance.phases:
            made = [(t.id, t.began_s, t.seconds, t.outcome) for t in phase.tasks]
            if (command := phase.command) is not None:
                ended = "ok" if command.exit_code == 0 else "failed"
                made.append((COMMAND, command.began_s, command.seconds, ended))
            for id_, began_s, seconds, outcome in made:
                key = (role_of(instance.label), phase.name, id_)
                spans.setdefault(key, []).append((shift_s + began_s, seconds))
                outcomes.setdefault(key, Counter())[outcome] += 1
    return [
        {
            "role": describe(role),
            "phase": describe(phase),
            "task": describe(task),
            "count": len(each),
            "outcomes": dict(outcomes[role, phase, task]),
            "begin": quantiles([begin for begin, _ in each]),
            "end": quantiles([begin + seconds for begin, seconds in each]),
            "seconds": quantiles([seconds for _, seconds in each]),
        }
        for (role, phase, task), each in spans.items()
    ]


def quantiles(values: Sequence[float]) -> list[float]:
    """Minimum, 10 %, median, 90 % and maximum of some numbers; empty for none."""
    ordered = sorted(values)
    if len(ordered) < 2:
        return [round(value, 3) for value in ordered] * len(QUANTILES)
    inner = statistics.quantiles(ordered, n=10, method="inclusive")
    return [round(v, 3) for v in (ordered[0], inner[0], inner[4], inner[8], ordered[-1])]
