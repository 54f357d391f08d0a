"""All incidents that run: each file of cases/ has a table of some."""

from __future__ import annotations

import importlib
import os

from tests.incidents.incident import Incident

_CASES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "cases")


def _read() -> dict[str, Incident]:
    incidents: dict[str, Incident] = {}
    for name in sorted(os.listdir(_CASES)):
        if name.endswith(".py"):
            module = importlib.import_module(f"tests.incidents.cases.{name[:-3]}")
            incidents.update(module.INCIDENTS)
    return incidents


INCIDENTS: dict[str, Incident] = _read()
