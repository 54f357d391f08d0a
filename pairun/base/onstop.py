"""The container's exit code if its command exits with 0 after a stop."""

from __future__ import annotations

import signal
from typing import Literal

ON_STOP_VARIABLE = "PAIRUN_ON_STOP"
"""The variable with the setting; `pairun manifest` sets it for controllers that read exit codes."""

OnStop = Literal["interrupted", "own"]
"""``interrupted``: 143 if the stop came from outside the container; ``own``: the command's code."""

INTERRUPTED: OnStop = "interrupted"
OWN: OnStop = "own"
INTERRUPTED_CODE = 128 + signal.SIGTERM


def read_on_stop(value: object) -> OnStop | None:
    """Parse the setting.

    Args:
        value: the text; None or empty for no setting.

    Raises:
        ValueError: it is neither of the two.
    """
    match value:
        case None | "":
            return None
        case "interrupted":
            return INTERRUPTED
        case "own":
            return OWN
    raise ValueError(f"{value!r} is neither '{INTERRUPTED}' nor '{OWN}'")
