"""The steps of OpenPAI's own init phase, and every case in which pairun differs on purpose."""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from typing import Any

from pairun.base.records import record
from pairun.playbook.document.reading import read_file

_FILE = os.path.join(os.path.dirname(__file__), "original.yaml")

AREAS = {
    "jobs": "How a job's text is read",
    "plugins": "Plugins",
    "environment": "Environment",
    "init": "The init phase",
    "runtime": "The user's container",
    "exit": "How it ended",
}
"""The parts of the table, in order."""


@record
class Step:
    """One step of the original's init phase.

    Attributes:
        step: its name in the original's log.
        task: the id of pairun's task, ``plugins`` for all tasks of plugins, or ``init`` for what
            pairun's init does without a task.
        exit_codes: the init container's exit codes if the step fails, as text.
        gang: True: only with gang allocation; False: only without it; None: always.
    """

    step: str
    task: str
    exit_codes: str
    gang: bool | None = None


@record
class Difference:
    """One case; ``there`` is what the original does, ``here`` what pairun does."""

    id: str
    area: str
    case: str
    there: str
    here: str


@functools.cache
def steps() -> Sequence[Step]:
    """The steps, in order."""
    return tuple(Step(**s) for s in _document()["steps"])


@functools.cache
def differences() -> Sequence[Difference]:
    """Every case, in the order of the table."""
    return tuple(Difference(**d) for d in _document()["differences"])


@functools.cache
def _document() -> dict[str, Any]:
    document: dict[str, Any] = read_file(_FILE, "built-in").plain()
    return document
