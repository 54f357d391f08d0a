"""A command that runs in parallel to the module and exchanges data with it."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Mapping, Sequence

from pairun.host.starting import end, not_started


class Conversation:
    """A command that runs in parallel to the module; see `pairun.module.Talk`.

    Args:
        process: the command, with pipes for its input and its output.
    """

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        assert process.stdin is not None
        assert process.stdout is not None
        self._input, self._output = process.stdin, process.stdout
        for pipe in (self._input, self._output):
            os.set_blocking(pipe.fileno(), False)

    def take(self) -> bytes:
        """Its output since the last call; does not wait."""
        output = b""
        with contextlib.suppress(BlockingIOError, ValueError):
            while data := os.read(self._output.fileno(), 65536):
                output += data
        return output

    def say(self, data: bytes) -> None:
        """Write to its input; data that do not fit into the pipe are lost."""
        with contextlib.suppress(OSError, ValueError):
            os.write(self._input.fileno(), data)

    def code(self) -> int | None:
        """Its exit status, or None while it runs."""
        return self._process.poll()

    def end(self) -> None:
        """Stop it if it runs."""
        if self._process.poll() is None:
            end(self._process)
        self._input.close()
        self._output.close()


def start(argv: Sequence[str], *, env: Mapping[str, str]) -> Conversation:
    """Start a command to talk with.

    Args:
        argv: program and arguments; the program is looked up in ``PATH`` of ``env``.
        env: the whole environment.

    Raises:
        Permanent: it cannot be executed.
    """
    try:
        return Conversation(
            subprocess.Popen(
                list(argv), env=dict(env), bufsize=0, stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            )
        )  # fmt: skip
    except (OSError, ValueError) as e:
        raise not_started(e, argv[0], None) from e
