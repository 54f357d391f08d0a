"""The work directories of ``pairun run``: their names, for whoever makes and whoever reads them."""

from __future__ import annotations

RUNS = "pairun-run"
"""The folder in which ``pairun run`` makes its work directories."""

MARKER = ".pairun-run"
"""In every work directory: lists what a run made there, and is its lock."""

PREVIOUS = "previous"
"""In a work directory: what the run before left; pairun's own when it holds a `MARKER`."""
