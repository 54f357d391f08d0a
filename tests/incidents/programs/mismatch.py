"""Trains; one rank believes that the epoch is over and shares the best loss."""

import torch
import torch.distributed as dist
from training import RANK, end, log, start

start()
total = 20 if RANK != 2 else 13
for n in range(total):
    loss = torch.tensor([1.0 / (n + 1)])
    dist.all_reduce(loss)
    if n % 5 == 0:
        log.info("step %d loss %.4f", n, loss.item())
best = torch.zeros(1000)
dist.broadcast(best, src=0)
log.info("best model shared")
end()
