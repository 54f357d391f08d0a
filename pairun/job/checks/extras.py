"""Finds likely mistakes in a job's ``extras``, which OpenPAI's REST server does not check."""

from __future__ import annotations

from difflib import get_close_matches

from pairun.errors import Problems, did_you_mean
from pairun.job.model import RUNTIME_PLUGIN
from pairun.playbook.document.reading import Node

_KEYS = (
    RUNTIME_PLUGIN,
    "allowAzCopy",
    "enableLocalStorage",
    "forceNodes",
    "gangAllocation",
    "hivedScheduler",
    "jobStatusChangeNotification",
    "pairun",
    "storages",
    "submitFrom",
)
_CLOSE = 0.85
"""Higher than elsewhere: anyone may add extras, and most unknown ones are no typos."""
_STORAGE_KEYS = ("name", "mountPath")


def check_extras(document: Node, problems: Problems) -> None:
    """Warn of keys that are almost a known one, and of storages that are skipped."""
    extras = document.get("extras")
    if extras is None:
        return
    folded = {k.lower(): k for k in _KEYS}
    for key, child in extras.items():
        if key in _KEYS:
            continue
        for close in get_close_matches(key.lower(), folded, 1, _CLOSE):
            problems.warning(
                "PR502",
                f"unknown key '{key}' in extras has no effect",
                child.key or child.place,
                f"did you mean '{folded[close]}'?",
            )
    storages = extras.get("storages")
    if storages is None or storages.value is None:
        return
    if not isinstance(storages.value, list):
        problems.warning(
            "PR503",
            "extras.storages must be a list; none of it is mounted",
            storages.place,
            "each item is a mapping: {name: CLAIM, mountPath: PATH}",
        )
    for item in storages.elements():
        _check_storage(item, problems)


def _check_storage(item: Node, problems: Problems) -> None:
    if not isinstance(item.value, dict):
        text = item.value if isinstance(item.value, str) else "CLAIM"
        problems.warning(
            "PR503",
            "an item of extras.storages must be a mapping; this one is skipped",
            item.place,
            f"write {{name: {text}}}",
        )
        return
    for key, child in item.items():
        if key not in _STORAGE_KEYS:
            problems.warning(
                "PR502",
                f"unknown key '{key}' in an item of extras.storages has no effect",
                child.key or child.place,
                did_you_mean(key, _STORAGE_KEYS),
            )
        elif isinstance(child.value, dict | list):
            problems.warning(
                "PR503", f"{key} in an item of extras.storages must be text", child.place
            )
    name = item.get("name")
    if name is None or name.value in (None, ""):
        problems.warning(
            "PR504",
            "'name' is missing in an item of extras.storages, which is skipped",
            item.place,
            "it names a PersistentVolumeClaim",
        )
