"""A reviewed task as every view shows it: its JSON form and its verdict in words, with secrets masked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from pairun.plan import EVENTS, Task
from pairun.report.shown import override_data, shown_data, source_data
from pairun.review.taskreview import Reviewed, is_unset, keyword_values, sources_of
from pairun.secrets.vault import Vault

KIND_MARKS = {
    "writes": ("~", "yellow"), "runs": ("$", "magenta"), "unknown": ("?", "cyan"),
    "check": ("!", "blue"), "no_change": ("=", "dim"), "skipped": ("-", "dim"),
    "disabled": ("-", "dim"),
}  # fmt: skip
"""The symbol and colour of each kind of task (`Reviewed.kind`)."""


@attrs.frozen(kw_only=True)
class TaskView:
    """A reviewed task for its reader.

    Attributes:
        task: the reviewed task.
        data: its JSON form.
        reason: why it would do this, and what it would change.
        words: what it would do, and why.
        brought: the layer and the place that added it; empty for the built-in root.
        same_as: an earlier role that has the same task; empty if there is none.
    """

    task: Reviewed
    data: Mapping[str, Any]
    reason: str
    words: str
    brought: str
    same_as: str = ""

    @property
    def handlers(self) -> list[tuple[str, Mapping[str, Any]]]:
        """Its exit handlers, each after the events it runs for."""
        return [
            ("always" if each["event"] == list(EVENTS) else ", ".join(each["event"]), each)
            for each in self.data.get("on_exit", ())
        ]


def view_of(reviewed: Reviewed, vault: Vault) -> TaskView:
    """The view of a task."""
    verdict = reviewed.verdict
    reason = vault.text(verdict.because)
    if verdict.before or verdict.after:
        before, after = (vault.text(x or "nothing") for x in (verdict.before, verdict.after))
        reason += f" ({before} → {after})"
    brought = f"{reviewed.layer}: {reviewed.where}"
    return TaskView(
        task=reviewed,
        data=_data(reviewed, vault),
        reason=reason,
        words=_words(reviewed, reason),
        brought="" if reviewed.layer in ("", "built-in") else brought,
    )


def _words(reviewed: Reviewed, reason: str) -> str:
    kind, does = reviewed.verdict.kind, reviewed.verdict.does
    if reviewed.disabled:
        return f"disabled by {reviewed.disabled}"
    if reviewed.skipped or kind == "check" or reason.startswith(f"{does or None} "):
        return reason
    known = {"no_change": "no change: ", "will_change": "will change: "}
    return (f"{does} what " if does else known.get(kind, "unknown until run: ")) + reason


def _data(reviewed: Reviewed, vault: Vault) -> dict[str, Any]:
    verdict, task = reviewed.verdict, reviewed.task
    out: dict[str, Any] = {
        "id": reviewed.id,
        "name": vault.text(reviewed.name),
        "module": reviewed.module,
        "layer": reviewed.layer,
        "where": reviewed.where,
        "verdict": verdict.kind,
        "because": vault.text(verdict.because),
    }
    origins = reviewed.origins
    group = vault.text(reviewed.group) if reviewed.group else None
    before = {"does": verdict.does, "disabled": reviewed.disabled, "parallel": group}
    after = {
        "overrides": [override_data(*each, vault) for each in reviewed.overrides],
        "sources": [source_data(*each, vault) for each in sources_of(origins)] if origins else [],
    }
    return {
        **out,
        **{key: value for key, value in before.items() if value},
        **(_task_data(task, vault) if task else {}),
        **{key: value for key, value in after.items() if value},
    }


def _task_data(task: Task, vault: Vault) -> dict[str, Any]:
    keywords = {k: v for k, v in keyword_values(task).items() if not is_unset(k, v)}
    handlers = [
        {"id": h.id, "name": vault.text(h.title), "module": h.module, "event": list(h.events),
         **_task_data(h, vault)}
        for h in task.on_exit
    ]  # fmt: skip
    data = {"args": task.args, **keywords}
    return {
        **{k: shown_data(v, vault) for k, v in data.items()},
        **({"on_exit": handlers} if handlers else {}),
    }


def summary(tasks: Iterable[Reviewed]) -> str:
    """One sentence about tasks."""
    counts = Counter(task.kind for task in tasks)
    counts["skipped"] += counts.pop("disabled", 0)
    words = {
        "writes": "writes" if counts["writes"] == 1 else "write",
        "runs": f"run{'s' * (counts['runs'] == 1)} a command",
        "unknown": "unknown until run",
        "check": f"check{'s' * (counts['check'] != 1)}",
        "no_change": "without change",
        "skipped": "skipped",
    }
    parts = ", ".join(f"{counts[kind]} {word}" for kind, word in words.items() if counts[kind])
    total = counts.total()
    return f"{total} task{'s' * (total != 1)}: {parts}"
