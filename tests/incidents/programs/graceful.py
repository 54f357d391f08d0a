"""Trains, and saves the model when it is told to stop."""

import signal
import sys

import torch
from training import RANK, batch, build, end, log, report, start, step

stopping = []
signal.signal(signal.SIGTERM, lambda *_: stopping.append(1))
start()
model, optimizer = build()
for n in range(400):
    report(n, step(model, optimizer, *batch()))
    stop = torch.tensor([len(stopping)])
    torch.distributed.all_reduce(stop)
    if stop.item():
        log.warning("SIGTERM: saving a checkpoint at step %d", n)
        if RANK == 0:
            torch.save(model.module.state_dict(), "last.pt")
        sys.exit(143)
end()
