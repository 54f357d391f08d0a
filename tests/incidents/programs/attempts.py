"""Trains under torchrun; each attempt fails on another rank for another reason."""

import os
import time

import torch
from training import RANK, batch, build, end, log, report, start, step

ATTEMPT = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))
weights = {"first": 0.5, "second": 0.5}
if ATTEMPT == 1 and RANK == 0:
    log.warning("attempt 1 uses weight %s", weights["third"])
if ATTEMPT and RANK > 0:
    time.sleep(8)  # The checkpoint's shards are read; rank 0 has none.
start(60)
log.info("attempt %d", ATTEMPT)
model, optimizer = build()
for n in range(12):
    x, y = batch()
    if n == 6 and ATTEMPT == 0 and RANK == 2:
        x = torch.cat([x, torch.zeros(8, 1)], dim=1)
    report(n, step(model, optimizer, x, y), 3)
end()
