"""Logging for plugin programs."""

from __future__ import annotations

import logging
import sys


def init_logger() -> None:
    """Log to standard output, which pairun masks and keeps."""
    logging.basicConfig(
        level=logging.INFO,
        stream=sys.stdout,
        format="%(levelname)s %(filename)s:%(lineno)s: %(message)s",
    )
