"""The page on a run: its data for the script, with the log text around what failed."""

from __future__ import annotations

import datetime
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import attrs

from pairun.report.journal.blame import slowest
from pairun.report.journal.data import blame_data
from pairun.report.journal.finding import natural
from pairun.report.journal.history import WORST_FIRST, InstancePast, PhasePast
from pairun.report.journal.records import describe
from pairun.report.journal.runoutcome import first_failure, stop_by_person
from pairun.report.page.document import assets, document
from pairun.report.page.lanes import (
    MAX_LINES,
    MOST_LANES,
    bands,
    clip,
    diagnosis,
    lane,
    outstanding,
    role_of,
    tidy,
)

_MOST_COSTS = 40
"""How many of a phase's tasks the page lists by duration."""


def run_page(instances: Sequence[InstancePast], title: str, problems: Sequence[str]) -> str:
    """Build the HTML file.

    Args:
        instances: the instances.
        title: the run's name for people.
        problems: what could not be read, in sentences.
    """
    run = headline(instances, title)
    return document(
        "run.html.j2",
        f"{run['title']}: {run['outcome']}",
        model(instances, problems),
        style=assets("look.css", "run.css"),
        script=assets("shared.js", "run.js"),
        run=run,
    )


def headline(instances: Sequence[InstancePast], title: str) -> dict[str, Any]:
    """What a reader sees first: title, worst outcome, what happened, what to do, other facts."""
    counts = Counter(i.outcome for i in instances)
    outcome = min(counts, key=WORST_FIRST.index, default="succeeded")
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
    return {
        "title": clip(title),
        "outcome": outcome,
        "sentence": clip(sentence),
        "advice": clip(advice),
        "facts": [(name, clip(value)) for name, value in facts],
    }


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
    settings: dict[str, int] = {}
    return {
        "began": zero or None,
        "seconds": round(max(ends, default=0.0), 3),
        "count": len(instances),
        "lanes": [lane(i, zero, settings) for i in shown],
        "settings": list(map(json.loads, settings)),
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
            tidy(attrs.asdict(s)) for s in slowest(begun)[:_MOST_COSTS]
        ]
        if len(begun) > 1
        else [],
        "logs": excerpts(sorted(instances, key=lambda i: i.label != label)),
        "problems": [clip(p) for p in problems],
    }  # fmt: skip


def _by_role(instances: Sequence[InstancePast], first: str | None) -> list[InstancePast]:
    """Sort by role and number; the first failure is first in its role."""
    return sorted(instances, key=lambda i: (role_of(i.label), i.label != first, natural(i.label)))


def _costs(phase: PhasePast) -> dict[str, Any]:
    data = blame_data(phase)
    costs = [cost for cost in data["costs"][:_MOST_COSTS] if cost["seconds"] > 0]
    shown: dict[str, Any] = tidy({**data, "costs": costs, "title": phase.title})
    return {**shown, "seconds": round(phase.seconds, 3)}


MOST_EXCERPTS = 40
"""How many excerpts a page shows; those of the first instances in the given order."""

_AROUND = 5
_LINE_CHARS = 500


def excerpts(instances: Sequence[InstancePast]) -> list[dict[str, Any]]:
    """The excerpts of instances: a title, the lines, and which of them are evidence."""
    found: list[dict[str, Any]] = []
    for instance in instances:
        for phase in instance.phases:
            if phase.outcome == "success" and not any(task.failed for task in phase.tasks):
                continue
            for what, lines, marked in (*_of_tasks(phase), *_of_command(instance, phase)):
                if len(found) == MOST_EXCERPTS:
                    return found
                title = describe(f"{instance.label}: {what}")
                shown = [_shown(line.expandtabs()[:_LINE_CHARS]) for line in lines]
                found.append({"title": title, "lines": shown, "marked": marked})
    return found


def _of_tasks(phase: PhasePast) -> Iterator[tuple[str, list[str], list[int]]]:
    for task in phase.tasks:
        output = task.attempts[-1].output if task.attempts else ()
        lines = [str(line) for line in output][-MAX_LINES:]
        if task.failed and lines:
            yield f"last {_counted(lines)} of {task.id}", lines, []


def _of_command(
    instance: InstancePast, phase: PhasePast
) -> Iterator[tuple[str, list[str], list[int]]]:
    if phase.command is None or phase.outcome != "failure":
        return
    lines = instance.read_output().splitlines()
    # The journal may cut a line of evidence at both ends.
    evidence = [
        str(e.get("text", "")).strip("… ") for e in (phase.diagnosis or {}).get("evidence") or ()
    ]
    found = ([n for n, line in enumerate(lines) if text in line] for text in evidence if text)
    at = sorted({numbers[-1] for numbers in found if numbers})
    tail = max(0, len(lines) - MAX_LINES)
    while at and at[0] < tail:
        first = max(0, at[0] - _AROUND)
        end = at[0] + _AROUND + 1
        inside = [n for n in at if n < end]
        end = min(len(lines), inside[-1] + _AROUND + 1)
        yield "around the evidence", lines[first:end], [n - first for n in inside]
        at = at[len(inside) :]
    if lines:
        marked = [n - tail for n in at if n >= tail]
        yield f"last {_counted(lines[tail:])} of the command", lines[tail:], marked


def _shown(line: str) -> str:
    text = line.lstrip(" ")
    return " " * (len(line) - len(text)) + clip(text)


def _counted(lines: Sequence[str]) -> str:
    return f"{len(lines)} line{'s' * (len(lines) != 1)}"
