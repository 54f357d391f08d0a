"""Nothing of ours that fails may cost the user's command."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import Any

BREAK_SETTLE = "m.Supervisor.settle = lambda *a: 1 / 0"
BREAK_FIRST_WAIT = """
real = m.Supervisor.wait
def once(self, *a, **k):
    m.Supervisor.wait = real
    number = self._next_signal(None)
    raise RuntimeError("ours")
m.Supervisor.wait = once
"""


def test_error_after_the_command(volume: Any, start: Any) -> None:
    """An error of our own after the command keeps the command's exit code."""
    volume.command("exit 3")
    running = start(TEST_PATCH=BREAK_SETTLE)
    assert running.end() == 3
    assert running.got("[pairun] an error of pairun's own: ZeroDivisionError")


def test_error_during_the_command(volume: Any, start: Any, print_signals: str) -> None:
    """An error of our own while the command runs lets it go on, and signals still reach it."""
    volume.command(f"exec {print_signals} SIGTERM 8")
    running = start(TEST_PATCH=BREAK_FIRST_WAIT)
    running.line("ready")
    running.signal(signal.SIGWINCH)
    running.line("[pairun] an error of pairun's own: RuntimeError: ours")
    running.signal(signal.SIGTERM)
    assert running.end() == 8


def test_nobody_reads_our_lines(volume: Any, tmp_path: Any) -> None:
    """That standard error is closed does not change what happens."""
    volume.command(f"echo ran > {tmp_path}/ran; exit 5")
    driver = "import sys; from pairun.runtime.main import main; sys.exit(main(sys.argv[1]))"
    command = 'exec "$0" -c "$1" "$2" 2>&-'
    done = subprocess.run(
        ["sh", "-c", command, sys.executable, driver, str(volume.root)], check=False
    )
    assert done.returncode == 5
    assert (tmp_path / "ran").exists()
