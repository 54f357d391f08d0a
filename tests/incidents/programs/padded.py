"""Trains on sequences that are padded to a length."""

import torch
from training import RANK, build, end, report, start, step

start()
model, optimizer = build()
for n in range(25):
    lengths = [16] * 8
    if RANK == 6 and n == 18:
        lengths[4] = 17
    assert max(lengths) <= 16, f"sequence of {max(lengths)} tokens is longer than the model's 16"
    report(n, step(model, optimizer, torch.randn(8, 16), torch.randint(0, 4, (8,))))
end()
