"""Fails a test in which pairun opens a path of the shared volume beside the door."""

from __future__ import annotations

import functools
import importlib.util
import sys
from pathlib import Path
from types import FrameType
from typing import Any, Self

HERE = Path(__file__).parent
_TESTERS = (f"{HERE}/", f"{HERE.parent}/pairun/testing/")
"""Who looks at the volume from outside, as a person does."""


class DoorWatch:
    """What `tests/doorwatch` reports of the processes that get this environment.

    Args:
        volume: the shared volume; None where each process is told its own.
        report: a file that is not there yet, outside the volume.
    """

    def __init__(self, volume: Path | None, report: Path) -> None:
        self.env = {
            "PYTHONPATH": str(HERE / "doorwatch"),
            "DOOR_WATCH_VOLUME": str(volume or ""),
            "DOOR_WATCH_REPORT": str(report),
        }
        self._report = report

    def violations(self) -> str:
        """Every call beside the door, with the lines that led to it; empty where there was none."""
        return self._report.read_text() if self._report.exists() else ""


class InnerWatch:
    """The same for what runs in this process, and in what it forks; a context manager.

    Args:
        volume: the shared volume.
        report: a file that is not there yet, outside the volume.
    """

    def __init__(self, volume: Path, report: Path) -> None:
        self._volume = volume
        self._report = report

    def __enter__(self) -> Self:
        watch = _hooked()
        watch.VOLUME, watch.REPORT = str(self._volume.resolve()), str(self._report)
        return self

    def __exit__(self, *_: object) -> None:
        _hooked().REPORT = ""

    def violations(self) -> str:
        """As `DoorWatch.violations`."""
        return self._report.read_text() if self._report.exists() else ""


@functools.cache
def _hooked() -> Any:
    """The watch as a module, its hook added; a hook stays for the life of the process."""
    spec = importlib.util.spec_from_file_location("doorwatch", HERE / "doorwatch/sitecustomize.py")
    assert spec is not None
    assert spec.loader is not None
    watch = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(watch)

    def hook(event: str, args: tuple[object, ...]) -> None:
        if watch.REPORT and event in watch.EVENTS:
            caller = sys._getframe().f_back
            if not _is_by_a_test(caller):
                watch.check(event, args, caller)

    sys.addaudithook(hook)
    return watch


def _is_by_a_test(frame: FrameType | None) -> bool:
    """Whether a test makes a call itself, and not pairun on its behalf."""
    while frame is not None:
        path = frame.f_code.co_filename
        if path.startswith(_TESTERS):
            return True
        if path.startswith(f"{HERE.parent}/") and "/.venv/" not in path:
            return False
        frame = frame.f_back
    return True
