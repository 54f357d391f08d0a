"""The note that `pairun run` writes to an instance's volume before it stops the instance.

Both phases read it to report who stopped them: for a process, every stop is the same SIGTERM.
"""

from __future__ import annotations

import json
import os
from typing import NamedTuple

from pairun.base.fields import BadField, decode
from pairun.base.foreignjson import parse_json
from pairun.base.paths import STOP_NOTE
from pairun.volume.door import Door

_MAX_BYTES = 4096
_MAX_WORDS = 200


class StopNote(NamedTuple):
    """Whether a person stopped the run, and what happened, in one sentence."""

    by_person: bool
    words: str

    def text(self) -> str:
        """The note as the file's text."""
        return json.dumps(self._asdict())


def read_stop_note(door: Door) -> StopNote | None:
    """The note; None if it is missing or invalid."""
    try:
        data = door.read(os.path.join(door.root, STOP_NOTE), _MAX_BYTES)
        note = decode(StopNote, parse_json(data))
    except (OSError, ValueError, BadField):
        return None
    return note._replace(words=note.words[:_MAX_WORDS])
