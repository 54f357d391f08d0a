"""The progress of the user's code, as it reports it with ``pairun progress``.

One small JSON file in the Pod's log directory: schema 1, step, epoch, checkpoint, time.
"""

from __future__ import annotations

import json
import os
import time
from typing import Annotated, NamedTuple

from pairun.base.fields import Seconds, between, field_of
from pairun.base.foreignjson import parse_record
from pairun.volume.door import Door

NAME = "progress.json"
_SCHEMA = 1
MAX_PROGRESS_BYTES = 4096
_Number = Annotated[int, between(0, 10**15)]


class NotedProgress(NamedTuple):
    """The progress of the user's code.

    Attributes:
        step: its last step; None if it counts none.
        epoch: its last epoch; None if it counts none.
        checkpoint: the path of its last checkpoint; may be empty.
        at: when the code reported it, in seconds since the epoch.
    """

    step: int | None = None
    epoch: int | None = None
    checkpoint: str = ""
    at: float = 0.0

    def over(self, earlier: NotedProgress | None) -> NotedProgress:
        """This progress; fields that it does not set keep their earlier values."""
        if earlier is None:
            return self
        return NotedProgress(
            step=earlier.step if self.step is None else self.step,
            epoch=earlier.epoch if self.epoch is None else self.epoch,
            checkpoint=self.checkpoint or earlier.checkpoint,
            at=self.at,
        )


def write_progress(door: Door, folder: str, noted: NotedProgress) -> None:
    """Replace the file atomically, so that readers always see a whole file.

    Args:
        noted: what to write; its time is now.

    Raises:
        OSError: it cannot be written.
    """
    data = {"schema": _SCHEMA, **noted._asdict(), "at": round(time.time(), 3)}
    door.write(os.path.join(folder, NAME), json.dumps(data).encode() + b"\n")


def read_progress(door: Door, folder: str) -> NotedProgress | None:
    """The progress file in a Pod's log directory; None if it is missing or invalid.

    Args:
        door: to the shared volume; links are not followed.
    """
    try:
        return parse_progress(door.read(os.path.join(folder, NAME)))
    except OSError:
        return None


def parse_progress(text: bytes) -> NotedProgress | None:
    """Parse the file; None if it is invalid: the user's code may write to it, too."""
    data = parse_record(text[:MAX_PROGRESS_BYTES])
    if data is None or data.get("schema") != _SCHEMA:
        return None
    return NotedProgress(
        step=field_of(data, "step", _Number),
        epoch=field_of(data, "epoch", _Number),
        checkpoint=str(data.get("checkpoint") or "")[:1024],
        at=field_of(data, "at", Seconds, 0.0),
    )
