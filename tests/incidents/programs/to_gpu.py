"""Trains on a GPU."""

import torch
from training import build, end, log, report, start, step

start()
device = torch.device("cuda", 0)
log.info("using %s", device)
model, optimizer = build()
for n in range(20):
    x, y = torch.randn(8, 16).to(device), torch.zeros(8, dtype=torch.long).to(device)
    report(n, step(model, optimizer, x, y))
end()
