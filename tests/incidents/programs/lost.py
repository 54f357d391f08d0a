"""Trains until a rank is killed without a word."""

import os
import signal

from training import RANK, batch, build, end, report, start, step

start()
model, optimizer = build()
for n in range(30):
    report(n, step(model, optimizer, *batch()))
    if n == 17 and int(os.environ.get("KILLED_RANK", "5")) == RANK:
        os.kill(os.getpid(), signal.SIGKILL)
end()
