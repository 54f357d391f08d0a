"""Trains, and evaluates on rank 0 alone, with a barrier that the others do not enter."""

import torch.distributed as dist
from training import RANK, batch, build, end, log, report, start, step

start()
model, optimizer = build()
for n in range(30):
    report(n, step(model, optimizer, *batch()))
    if n == 15 and RANK == 0:
        log.info("evaluating")
        loss = step(model.module, optimizer, *batch(64))
        log.info("validation loss %.4f", loss)
        dist.barrier()
end()
