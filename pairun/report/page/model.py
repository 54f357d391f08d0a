"""All data of the page on a run, for its script."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Sequence
from typing import Any

import attrs

from pairun.report.journal.blame import Cost, blame, slowest
from pairun.report.journal.firstfailure import first_failure, stop_by_person
from pairun.report.journal.history import PhasePast
from pairun.report.journal.pastinstances import InstancePast
from pairun.report.journal.records import describe
from pairun.report.page.bands import MOST_LANES, bands, outstanding
from pairun.report.page.clipping import clip
from pairun.report.page.lanes import diagnosis, lane
from pairun.report.page.tasksettings import SettingsTable

MOST_COSTS = 40
"""How many of a phase's tasks the page lists by duration."""


@attrs.frozen(kw_only=True)
class Headline:
    """What a reader sees first on the page.

    Attributes:
        title: the page's title.
        outcome: failed, stopped, unfinished, no journal or succeeded: the worst of all instances.
        sentence: what happened, in one sentence.
        advice: what to do; empty if unknown.
        facts: other important facts, as name and value.
    """

    title: str
    outcome: str
    sentence: str
    advice: str
    facts: Sequence[tuple[str, str]]


_WORST_FIRST = ("failed", "stopped", "unfinished", "no journal")


def headline(instances: Sequence[InstancePast], title: str) -> Headline:
    """Build the beginning of the page.

    Args:
        instances: the instances.
        title: the run's name for people.
    """
    counts = Counter(i.outcome for i in instances)
    outcome = next((o for o in _WORST_FIRST if counts[o]), "succeeded")
    first = first_failure(instances)
    many = len(instances) > 1
    if first is not None:
        who = f"{first.label} failed first: " if many else ""
        sentence, advice = f"{who}{first.why}", first.advice
    else:
        sentence, advice = ("every instance succeeded" if many else "it succeeded"), ""
        if outcome != "succeeded":
            worst = next(i for i in instances if i.outcome == outcome)
            state = f"{worst.state}{_stopped_by(worst)}"
            state = f"{worst.label}: {state}" if many else state
            sentence = stop_by_person(instances) or state
    codes = Counter(i.exit_code for i in instances if i.exit_code is not None)
    versions = sorted({p.pairun for i in instances for p in i.phases if p.pairun})
    facts = [("instances", ", ".join(f"{n} {o}" for o, n in sorted(counts.items())))]
    if codes:
        by_code = (
            f"{code}" + (f" ({n} times)" if n > 1 else "") for code, n in sorted(codes.items())
        )
        facts.append(("exit codes", ", ".join(by_code)))
    if began := min((i.began for i in instances if i.began), default=0.0):
        at = datetime.datetime.fromtimestamp(began, datetime.UTC)
        facts.append(("began", f"{at:%Y-%m-%d %H:%M:%S} UTC"))
    if versions:
        facts.append(("pairun", ", ".join(versions)))
    return Headline(
        title=clip(title),
        outcome=outcome,
        sentence=clip(sentence),
        advice=clip(advice),
        facts=[(name, clip(value)) for name, value in facts],
    )


def _stopped_by(instance: InstancePast) -> str:
    stop = next((s for p in reversed(instance.phases) for s in p.stops), None)
    return "" if stop is None else f"; received {stop.signal} {stop.origin}".rstrip()


def model(instances: Sequence[InstancePast], problems: Sequence[str]) -> dict[str, Any]:
    """Build the data for the page's script.

    Args:
        instances: the instances.
        problems: what could not be read, in sentences.
    """
    zero = min((i.began for i in instances if i.began), default=0.0)
    folded = len(instances) > MOST_LANES
    first = first_failure(instances)
    label = first.label if first else None
    shown = outstanding(instances, label) if folded else _by_role(instances, label)
    ends = [i.began - zero + p.began_s + p.seconds for i in instances for p in i.phases]
    begun = [i for i in instances if i.phases]
    dearest = max(begun, key=lambda i: i.seconds, default=None)
    settings = SettingsTable()
    return {
        "began": zero or None,
        "seconds": round(max(ends, default=0.0), 3),
        "count": len(instances),
        "lanes": [lane(i, zero, settings) for i in shown],
        "settings": settings.rows,
        "bands": bands(instances, zero) if folded else [],
        "first": None if first is None else describe(first.label),
        "why": None if first is None or first.diagnosis is None else diagnosis(first.diagnosis),
        "blame": None
        if dearest is None
        else {
            "label": describe(dearest.label),
            "seconds": round(dearest.seconds, 3),
            "phases": [_costs(p) for p in dearest.phases],
        },
        "slowest": [
            {**attrs.asdict(s), "phase": describe(s.phase), "task": describe(s.task), "label": describe(s.label)}
            for s in slowest(begun)[:MOST_COSTS]
        ]
        if len(begun) > 1
        else [],
        "problems": [clip(p) for p in problems],
    }  # fmt: skip


def _by_role(instances: Sequence[InstancePast], first: str | None) -> list[InstancePast]:
    """Sort by role and number; the first failure is first in its role."""

    def key(instance: InstancePast) -> tuple[str, bool, int]:
        role, _, index = instance.label.rpartition("-")
        if not (index.isdecimal() and len(index) < 10):
            role, index = instance.label, "0"
        return role, instance.label != first, int(index)

    return sorted(instances, key=key)


def _costs(phase: PhasePast) -> dict[str, Any]:
    phase_blame = blame(phase)
    return {
        "title": phase_blame.title,
        "seconds": round(phase_blame.seconds, 3),
        "overhead": round(phase_blame.overhead_s, 3),
        "costs": [_cost(cost) for cost in phase_blame.costs[:MOST_COSTS] if cost.seconds > 0],
    }


def _cost(cost: Cost) -> dict[str, Any]:
    return {
        "id": describe(cost.id),
        "kind": cost.kind,
        "seconds": round(cost.seconds, 3),
        "share": round(cost.share, 4),
        "attempts": cost.attempts,
        "beside": None if cost.beside is None else describe(cost.beside),
    }
