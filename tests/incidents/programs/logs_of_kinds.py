"""Loggers as jobs have them: each formats times, levels and tracebacks in its own way."""

import json
import logging
import os
import sys
import time
import traceback
from typing import Protocol


class Logger(Protocol):
    """What the programs need of a logger."""

    def info(self, message: str) -> None:
        """Log progress."""

    def error(self, message: str) -> None:
        """Log an error."""

    def exception(self, message: str) -> None:
        """Log the exception that is being handled."""


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line = {"time": f"{stamp}Z", "severity": record.levelname, "message": record.getMessage()}
        if os.environ.get("LOG_RANK"):
            line["rank"] = int(os.environ["RANK"])
        if record.exc_info:
            line["stack_trace"] = "".join(traceback.format_exception(*record.exc_info))
        return json.dumps(line)


class _Structured:
    """Keys and values, as structlog prints them for people."""

    def __init__(self) -> None:
        import structlog

        self._log = structlog.get_logger()

    def info(self, message: str) -> None:
        self._log.info(message, rank=int(os.environ.get("RANK", "0")))

    def error(self, message: str) -> None:
        self._log.error(message, rank=int(os.environ.get("RANK", "0")))

    def exception(self, message: str) -> None:
        self._log.exception(message, rank=int(os.environ.get("RANK", "0")))


def logger(kind: str) -> Logger:
    """Return a logger of a kind."""
    if kind == "loguru":
        from loguru import logger as log

        return log
    if kind == "absl":
        from absl import logging as log

        log.set_verbosity("info")
        log.use_absl_handler()
        return log
    if kind == "structlog":
        return _Structured()
    log = logging.getLogger("fleet")
    log.setLevel(logging.INFO)
    log.propagate = False
    handler: logging.Handler = logging.StreamHandler(sys.stderr)
    if kind == "rich":
        from rich.console import Console
        from rich.logging import RichHandler

        handler = RichHandler(console=Console(width=110), rich_tracebacks=True)
    elif kind == "json":
        handler.setFormatter(_JsonLines())
    elif kind == "epoch":
        handler.setFormatter(logging.Formatter("%(created).3f %(levelname)s %(message)s"))
    elif kind == "clock":
        handler.setFormatter(logging.Formatter("[%(asctime)s] %(message)s", "%H:%M:%S"))
    elif kind == "ranked":
        form = "%(asctime)s,%(msecs)03d %(levelname).1s r{} %(message)s"
        handler.setFormatter(logging.Formatter(form.format(os.environ.get("RANK", "0"))))
    elif kind == "column":
        form = "%(asctime)s [worker={}] [%(levelname)s] %(message)s"
        handler.setFormatter(logging.Formatter(form.format(os.environ.get("RANK", "0"))))
    elif kind == "bare":
        handler.setFormatter(logging.Formatter("%(message)s"))
    else:
        handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(levelname)s: %(message)s"))
    log.addHandler(handler)
    return log
