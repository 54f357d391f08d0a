"""The names in the work directories of ``pairun run``."""

from __future__ import annotations

RUNS = "pairun-run"
"""The folder in which ``pairun run`` makes its work directories."""

MARKER = ".pairun-run"
"""A file in every work directory: lists what the run made there, and serves as its lock."""

PREVIOUS = "previous"
"""A folder in a work directory with the previous run's files; pairun's if it has a `MARKER`."""

OUTCOME = ".pairun-outcome.json"
"""A file in a work directory: whether the run's job succeeded, and why."""
