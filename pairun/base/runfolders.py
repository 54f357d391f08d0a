"""The names in the work directories of ``pairun run``."""

from __future__ import annotations

RUNS = "pairun-run"
"""The folder in which ``pairun run`` makes its work directories."""

MARKER = ".pairun-run"
"""A file in every work directory: it lists what the run made there, and is its lock."""

PREVIOUS = "previous"
"""A folder in a work directory: the files of the previous run; it is pairun's if it has a `MARKER`."""

OUTCOME = ".pairun-outcome.json"
"""A file in a work directory: whether the job of the run succeeded, and why."""
