"""Trains; the storage of one rank is slow for a while."""

import os
import time

from training import RANK, batch, build, end, log, report, start, step

start(float(os.environ.get("TIMEOUT_S", "12")))
model, optimizer = build()
for n in range(30):
    if n == 14 and RANK == 7:
        log.warning("reading shard-00007 takes long: 3 MB/s")
        time.sleep(float(os.environ.get("SLOW_S", "30")))
        log.info("read shard-00007")
    report(n, step(model, optimizer, *batch()))
end()
