"""A command that prints numbered lines and leaves orphans, evenly over a time, with little CPU.

Usage: load.py MINUTES LINES CHILDREN SECRET. It ends with 5, and says how many signals it received.
"""

from __future__ import annotations

import os
import signal
import sys
import time

TURN_S = 0.1
MASKED_EVERY = 100

minutes, lines, children, secret = (*map(float, sys.argv[1:4]), sys.argv[4])
received = 0


def count(*_: object) -> None:
    """Count a signal."""
    global received
    received += 1


signal.signal(signal.SIGUSR1, count)
began = time.monotonic()
printed = started = 0
part = 0.0
while part < 1.0:
    part = min(1.0, (time.monotonic() - began) / (minutes * 60))
    batch = range(printed, int(lines * part))
    printed = batch.stop
    text = "".join(
        f"line {n} {secret if n % MASKED_EVERY == 0 else 'loss 0.123'}\n" for n in batch
    ).encode()
    while text:
        text = text[os.write(1, text) :]
    while started < int(children * part):
        # the shell leaves its child behind
        os.waitpid(os.posix_spawn("/bin/sh", ["sh", "-c", ": &"], os.environ), 0)
        started += 1
    time.sleep(TURN_S)
print("signals", received, flush=True)
sys.exit(5)
