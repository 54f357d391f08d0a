"""Runs programs in a PID namespace, and kills all of it at once: as a kubelet that loses a container."""

from __future__ import annotations

import os
import random
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

NAMESPACE = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
if os.getuid() != 0:
    NAMESPACE += ["--user", "--map-root-user"]
WAIT_S = 120.0


class Tree:
    """A program and all that it starts.

    Args:
        argv: the program and its arguments.
        cwd: where it runs.
        env: its environment, beside PATH.
    """

    def __init__(self, argv: Sequence[str], cwd: Path, env: Mapping[str, str]) -> None:
        self._began = time.monotonic()
        self._process = subprocess.Popen(
            [*NAMESPACE, *argv],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            cwd=cwd,
            env={"PATH": os.environ["PATH"], **env},
        )

    def end(self) -> tuple[int, str, float]:
        """Wait for the end; returns the exit code, what was printed, and the seconds that it took."""
        printed, _ = self._process.communicate(timeout=WAIT_S)
        return self._process.returncode, printed, time.monotonic() - self._began

    def kill_after(self, seconds: float) -> str:
        """Kill every process of it after a time; returns what was printed.

        The pipe ends with the last process, so nothing of it runs any more then.
        """
        try:
            printed, _ = self._process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            printed, _ = self._process.communicate(timeout=WAIT_S)
        return printed


def moments(count: int, seconds: float, seed: int) -> list[float]:
    """Random moments of a run that takes some seconds, one in each of as many equal parts."""
    chosen = random.Random(seed)
    return [seconds * (n + chosen.random()) / count for n in range(count)]
