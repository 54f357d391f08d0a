"""What a page shows of each instance, on one time axis; of many instances, per role and task."""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pairun.report.journal.blame import COMMAND_ID, blame
from pairun.report.journal.data import instance_data
from pairun.report.journal.history import InstancePast, alike
from pairun.report.journal.records import describe
from pairun.volume.journal import Record

_MAX_TEXT = 2000
"""The limit for one text, in characters."""


def clip(value: Any) -> str:
    """Return a text that is safe to show, with a limited length."""
    text = describe(value)
    return text if len(text) <= _MAX_TEXT else text[: _MAX_TEXT - 1] + "…"


WAITING = ("barrier", "ssh_barrier")
"""Modules whose tasks wait for other instances."""

MAX_LINES = 50
"""How many of a failed attempt's last output lines the page shows."""

MOST_STOPS = 10
"""How many stop signals of a phase the page shows."""

MOST_SETTINGS = 50
"""How many settings of a task the page lists."""


def role_of(label: str) -> str:
    """The role in an instance's name: ``worker`` of ``worker-3``."""
    role, _, index = label.rpartition("-")
    return role if role and index.isdecimal() else label


def lane(instance: InstancePast, zero: float, settings: dict[str, int]) -> dict[str, Any]:
    """An instance as data for the page's script; every text is on one line and safe to show.

    Args:
        instance: the instance.
        zero: the origin of the page's time axis, in seconds since the epoch.
        settings: who set the values of tasks, each distinct row with its number; gets new rows.
    """
    data = instance_data(instance)
    for phase, past in zip(data["phases"], instance.phases, strict=True):
        path = set(blame(past).path)
        phase["title"] = past.title
        phase["stops"] = phase["stops"][:MOST_STOPS]
        if past.diagnosis is not None:
            phase["diagnosis"] = diagnosis(past.diagnosis)
        for task, of in zip(phase["tasks"], past.tasks, strict=True):
            task["path"], task["waits_for_others"] = of.id in path, of.module in WAITING
            if of.settings is not None:
                row = settings_row(of.settings)
                task["settings"] = settings.setdefault(row, len(settings))
            if len(of.attempts) < 2 and not of.failed and of.outcome != "ignored":
                del task["attempts"], task["waits"]
            for attempt in task.get("attempts", ()):
                attempt["output"] = attempt["output"][-MAX_LINES:]
    del data["journal"], data["ignored_records"]
    data |= {"role": role_of(instance.label), "state": instance.state}
    shown: dict[str, Any] = tidy(data, instance.began - zero)
    return shown


def tidy(value: Any, shift_s: float = 0.0) -> Any:
    """A report's data for the page's script: short texts and numbers, nothing empty or false.

    Args:
        value: data of `journal.data`.
        shift_s: when the instance began on the page's time axis; `began_s` becomes `begin` there.
    """
    if isinstance(value, Mapping):
        moments = {k for k in ("began_s", "handlers_began_s", "at_s") if value.get(k) is not None}
        axis = {k.replace("began_s", "begin"): round(shift_s + value[k], 3) for k in moments}
        kept = {
            k: tidy(v, shift_s)
            for k, v in value.items()
            if k not in moments and not (v is None or v is False or v == "")
        }
        return {**kept, **axis}
    if isinstance(value, list | tuple):
        return [tidy(v, shift_s) for v in value]
    if isinstance(value, float):
        # enough digits, and a page of many instances stays small
        return round(value, 4)
    return clip(value) if isinstance(value, str) else value


def diagnosis(record: Record) -> Any:
    """A diagnosis as data for the page."""
    evidence = [e.get("text", "") for e in record.get("evidence") or ()]
    return tidy({**record, "evidence": list(map(clip, evidence))})


def settings_row(settings: Record) -> str:
    """Who set what in a task, as JSON: ``by``, and ``set`` with path, value, by and was.

    Args:
        settings: the settings, as in `TaskPast.settings`; untrusted.
    """
    rows = [_setting(each) for each in settings["set"][:MOST_SETTINGS]]
    return json.dumps({"by": _by(settings), "set": rows}, sort_keys=True)


def _setting(setting: Record) -> dict[str, str]:
    was = setting.get("was")
    shown = {
        "path": clip(setting.get("path", "")),
        "value": _value(setting.get("value")),
        "by": _by(setting),
    }
    if isinstance(was, dict):
        is_default = was.get("value") is None
        shown["was"] = "the default" if is_default else f"{_value(was['value'])} ({_by(was)})"
    return shown


def _value(value: Any) -> str:
    return clip(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def _by(setting: Record) -> str:
    by = f"{setting.get('layer', '')} {setting.get('where', '')}".strip()
    return clip(", ".join(filter(None, (by, str(setting.get("source") or "")))))


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
                made.append((COMMAND_ID, command.began_s, command.seconds, ended))
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
