"""Fails a test whose pairun processes open a path of the shared volume beside the door."""

from __future__ import annotations

from pathlib import Path


class DoorWatch:
    """What `tests/doorwatch` reports of the processes that get this environment.

    Args:
        volume: the shared volume.
        report: a file that is not there yet, outside the volume.
    """

    def __init__(self, volume: Path, report: Path) -> None:
        self.env = {
            "PYTHONPATH": str(Path(__file__).parent / "doorwatch"),
            "DOOR_WATCH_VOLUME": str(volume),
            "DOOR_WATCH_REPORT": str(report),
        }
        self._report = report

    def violations(self) -> str:
        """Every call beside the door, with the lines that led to it; empty where there was none."""
        return self._report.read_text() if self._report.exists() else ""
