"""The program ``pairun``, which is also ``python -m pairun``."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import NoReturn

from pairun.cli.main import main


def program() -> NoReturn:
    """Run pairun and end the process, with the exit code of `main`."""
    code = main()
    # The command may have closed a stream whose reader is gone.
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    # The kernel frees the memory at once. Python would free each object alone, and after a fork
    # copy its page first: a tenth of the init phase.
    os._exit(code)


if __name__ == "__main__":
    program()
