"""Trains, and checks before each epoch that all ranks are there."""

import datetime
import time

import torch.distributed as dist
from training import RANK, batch, build, end, log, report, start, step

start(60)
model, optimizer = build()
for epoch in range(3):
    if epoch == 1 and RANK == 5:
        time.sleep(600)
    dist.monitored_barrier(timeout=datetime.timedelta(seconds=8), wait_all_ranks=True)
    log.info("epoch %d", epoch)
    for n in range(10):
        report(n, step(model, optimizer, *batch()))
end()
