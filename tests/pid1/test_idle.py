"""What PID 1 does while the user's command does nothing: nothing."""

from __future__ import annotations

import pathlib
import re
import time
from collections.abc import Callable

import pytest

from tests.pid1.conftest import Running, Volume

SETTLED_S = 2.0
IDLE_S = 5.0


def _switches(pid: int) -> int:
    """How often the threads of a process have been given a processor and left it (proc(5))."""
    texts = [p.read_text() for p in pathlib.Path(f"/proc/{pid}/task").glob("*/status")]
    return sum(
        int(n) for text in texts for n in re.findall(r"voluntary_ctxt_switches:\s+(\d+)", text)
    )


@pytest.mark.slow
def test_pid_1_does_not_wake_up(volume: Volume, start: Callable[..., Running]) -> None:
    """It waits for events, with no time-out: a node with many Pods has nothing to do for them."""
    volume.command("echo ready; exec sleep 600\n")
    phase = start()
    phase.line("ready")
    # Nothing can be awaited here: what is counted is that nothing happens.
    time.sleep(SETTLED_S)
    before = _switches(phase.pid)
    time.sleep(IDLE_S)
    assert _switches(phase.pid) == before
