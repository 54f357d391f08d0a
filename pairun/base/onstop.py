"""What the exit code of a container is when its command ends with 0 after a stop."""

from __future__ import annotations

import signal
from typing import Literal

VARIABLE = "PAIRUN_ON_STOP"
"""Sets it for a container; `pairun manifest` does where a controller counts exit codes alone."""

OnStop = Literal["interrupted", "own"]
"""``interrupted``: 143 where the stop came from outside the container; ``own``: the command's."""

INTERRUPTED: OnStop = "interrupted"
OWN: OnStop = "own"
INTERRUPTED_CODE = 128 + signal.SIGTERM


def read_on_stop(value: object) -> OnStop | None:
    """A setting as text.

    Args:
        value: the text; None or empty for none.

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
