"""Who set which value of the tasks, as journal records; reports show them with the results."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from pairun.handover.journal import Record
from pairun.job.planning import RolePlan
from pairun.report.shown import override_data
from pairun.review.taskreview import overrides_of
from pairun.secrets.vault import Vault

MAX_VALUE = 500
"""The maximum length of a value in a record, in characters."""


def settings_records(plan: RolePlan, vault: Vault) -> Iterator[Record]:
    """A record for each task of both phases that is not disabled.

    Args:
        plan: the plans of a role, with the history of their values.
        vault: masks the values.
    """
    for phase, draft in plan.effective.drafts.items():
        for task in draft.tasks():
            if not task.disabled:
                yield {
                    "type": "settings",
                    "phase": phase,
                    "task": task.id,
                    "layer": task.origin,
                    "where": str(task.place),
                    "set": [_cut_values(override_data(o, vault)) for o in overrides_of(task)],
                }


def _cut_values(override: dict[str, Any]) -> dict[str, Any]:
    was = override["was"]
    return {
        **override,
        "value": _cut(override["value"]),
        "was": {**was, "value": _cut(was["value"])},
    }


def _cut(value: Any) -> Any:
    """The value; if it is too long, the start of its text."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return value if len(text) <= MAX_VALUE else f"{text[: MAX_VALUE - 1]}…"
