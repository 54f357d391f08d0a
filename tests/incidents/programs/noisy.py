"""Trains well, and says much that looks bad."""

import sys
import time
import warnings

from training import RANK, batch, build, end, log, report, start, step

start()
warnings.warn("CUDA is not available; disabling mixed precision", stacklevel=1)
log.error("could not load the profiler plugin: No module named 'profiler'; going on without")
model, optimizer = build()
for n in range(40):
    if n == 12 and RANK == 1:
        try:
            open("/mnt/cache/shard-12")
        except OSError:
            log.exception("reading shard-12 from the cache failed, reading it from the store")
    if n == 20:
        print("Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 32768.0")
    if n == 25 and RANK == 2:
        print(
            "WARNING: connection to metrics server reset by peer, retrying (1/5)", file=sys.stderr
        )
        time.sleep(0.5)
        print("reconnected", file=sys.stderr)
    report(n, step(model, optimizer, *batch()))
log.info("accuracy 0.91 error 0.09 failures 0")
end()
