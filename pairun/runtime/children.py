"""How PID 1 starts pairun as a child process and exchanges data with it.

The data are in memory files (memfd_create(2)): they are never on disk, never block their writer,
and disappear with the last process that has them open.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any, NamedTuple, Self

from pairun.base.foreignjson import MAX_BYTES, parse_record
from pairun.base.system import BUNDLED

Answer = dict[str, Any]


def own_command(*args: str) -> list[str]:
    """The argv that starts pairun with ``args``.

    Uses ``-P``: the working directory is the user's and must not affect imports.
    """
    if BUNDLED:
        return [sys.executable, *args]
    return [sys.executable, "-P", "-m", "pairun", *args]


class State(NamedTuple):
    """The end of the tasks before the user's command.

    Attributes:
        outcome: success, failure or signal.
        exit_code: the phase's, unless the outcome is success.
        script_code: exit code of the plugin's script that failed the phase, or None.
        message: the reason, in one sentence.
        registered: ids of the exit handlers that must run.
        environment: the variables that tasks exported; None removes one.
        raw: the complete answer, for the process that runs the handlers.
    """

    outcome: str
    exit_code: int
    script_code: int | None
    message: str
    registered: tuple[str, ...]
    environment: dict[str, str | None]
    raw: Answer

    @classmethod
    def of(cls, answer: Answer | None, message: str = "the tasks left no result") -> State:
        """Read the state from an answer; a missing or invalid answer counts as failure.

        Args:
            answer: what the process wrote, or None.
            message: the reason if it wrote nothing.
        """
        broken: Answer = {
            "outcome": "failure",
            "exit_code": 255,
            "message": message,
            "registered": [],
            "results": {},
            "environment": {},
        }
        raw = broken if answer is None else answer
        try:
            return cls(
                str(raw["outcome"]),
                int(raw["exit_code"]),
                script_code_of(raw),
                str(raw.get("message", "")),
                tuple(raw["registered"]),
                dict(raw["environment"]),
                raw,
            )
        except (KeyError, TypeError, ValueError):
            return cls.of(broken)

    @classmethod
    def nothing_ran(cls) -> State:
        """The state if there are no tasks before the command."""
        success = {"outcome": "success", "exit_code": 0}
        return cls.of({**success, "registered": [], "results": {}, "environment": {}})


class FailedHandler(NamedTuple):
    """An exit handler that may fail the phase and failed.

    Attributes:
        script_code: of the plugin script that it ran, or None.
    """

    script_code: int | None

    @classmethod
    def of(cls, answer: Answer) -> FailedHandler | None:
        """The failed handler in an answer; None if there is none."""
        if not answer.get("failed", True):
            return None
        try:
            return cls(script_code_of(answer))
        except (TypeError, ValueError):
            return cls(None)


def secrets_of(answer: Answer) -> list[str]:
    """The secrets that tasks have learned; ignores values that are not texts."""
    secrets = answer.get("secrets")
    return [text for text in secrets if isinstance(text, str)] if isinstance(secrets, list) else []


def script_code_of(answer: Answer) -> int | None:
    """The exit code of the plugin script that failed; None if none did.

    Raises:
        TypeError, ValueError: it is not a number.
    """
    code = answer.get("script_code")
    return None if code is None else int(code)


class Letter:
    """A memory file that a child inherits; leaving the ``with`` block closes our descriptor.

    Args:
        content: what the child reads; None if the child writes.

    Raises:
        OSError: file descriptors or memory ran out.
    """

    def __init__(self, content: Answer | None = None) -> None:
        self.fd = os.memfd_create("pairun")
        try:
            os.set_inheritable(self.fd, True)
            if content is not None:
                with open(self.fd, "w", encoding="utf-8", closefd=False) as f:
                    json.dump(content, f)
                os.lseek(self.fd, 0, os.SEEK_SET)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def read(self) -> Answer | None:
        """Read what the child wrote, and close the file; None if it is incomplete."""
        try:
            os.lseek(self.fd, 0, os.SEEK_SET)
            with open(self.fd, "rb", closefd=False) as f:
                # `read` allocates what it is asked for.
                return parse_record(f.read(min(os.fstat(self.fd).st_size, MAX_BYTES)))
        finally:
            self.close()

    def close(self) -> None:
        """Close our descriptor of the file."""
        os.close(self.fd)
