"""Who set what in a task; the page on a run stores it once, because most instances share it."""

from __future__ import annotations

import json
from typing import Any

from pairun.report.page.clipping import clip
from pairun.volume.journal import Record


class SettingsTable:
    """Collects the settings of tasks; a task refers to them by number.

    Attributes:
        rows: each distinct row once: ``by``, and ``set`` with path, value, by and was.
    """

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self._numbers: dict[str, int] = {}

    def number(self, settings: Record) -> int:
        """The number of a row, from 0.

        Args:
            settings: the settings, as in `TaskPast.settings`; untrusted.
        """
        row = {
            "by": _by(settings),
            "set": [_setting(each) for each in settings["set"][:MOST_SETTINGS]],
        }
        key = json.dumps(row, sort_keys=True)
        if key not in self._numbers:
            self._numbers[key] = len(self.rows)
            self.rows.append(row)
        return self._numbers[key]


MOST_SETTINGS = 50
"""How many settings of a task the page lists."""


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
    return clip(f"{setting.get('layer', '')} {setting.get('where', '')}".strip())
