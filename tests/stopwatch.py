"""Time that passes in a test, judged by how busy the machine is meanwhile."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Self

BURST_S = 0.02
PAUSE_S = 0.08


class Stopwatch:
    """Measures a block, and beside it how much longer than alone a thread takes for its work.

    Attributes:
        took_s: how long the block took.
        slowness: wall-clock seconds per second of work, at the worst moment; 1 on a quiet machine.
    """

    def __init__(self) -> None:
        self.took_s = 0.0
        self.slowness = 1.0
        self._over = threading.Event()
        self._witness = threading.Thread(target=self._work, daemon=True)

    def __enter__(self) -> Self:
        """Start it."""
        self._began = time.monotonic()
        self._witness.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        """Stop it."""
        self.took_s = time.monotonic() - self._began
        self._over.set()
        self._witness.join()

    def __repr__(self) -> str:
        """For a failed assertion."""
        return (
            f"{self.took_s:.2f} s on a machine that is {self.slowness:.1f} times slower than alone"
        )

    def within(self, limit_s: float, *, work_s: float = 0.5, took_s: float | None = None) -> bool:
        """Whether a limit was kept; what is work, and no wait, takes longer on a busy machine.

        Args:
            limit_s: in seconds, on a quiet machine.
            work_s: how much of that is work rather than waiting.
            took_s: a part of the block; the whole by default.
        """
        took_s = self.took_s if took_s is None else took_s
        return took_s < limit_s + work_s * (self.slowness - 1.0)

    def _work(self) -> None:
        while True:
            began, worked = time.monotonic(), time.thread_time()
            while time.thread_time() - worked < BURST_S:
                pass
            self.slowness = max(self.slowness, (time.monotonic() - began) / BURST_S)
            if self._over.wait(PAUSE_S):
                return
