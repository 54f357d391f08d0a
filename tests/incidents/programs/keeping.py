"""Trains; rank 0 saves the model after each epoch while the others wait."""

import os

import torch
import torch.distributed as dist
from training import RANK, batch, build, end, log, report, start, step

start()
model, optimizer = build(2048)
for epoch in range(4):
    for n in range(6):
        report(n, step(model, optimizer, *batch(features=2048)))
    if RANK == 0:
        path = os.path.join("checkpoints", f"epoch-{epoch}.pt")
        torch.save(model.module.state_dict(), path)
        log.info("saved %s", path)
    dist.barrier()
end()
