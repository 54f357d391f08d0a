"""Trains on labelled records; the label of one shard is missing in the table."""

import torch
from training import RANK, batch, build, end, report, start, step

LABELS = {"cat": 0, "dog": 1, "horse": 2, "sheep": 3}


def read_shard(rank: int) -> list[str]:
    """Return the labels of a rank's records."""
    names = ["cat", "dog", "horse", "sheep"] * 20
    if rank == 3:
        names[33] = "zebra"
    return names


def encode(names: list[str]) -> torch.Tensor:
    """Return numbers for labels."""
    return torch.tensor([LABELS[name] for name in names])


start()
model, optimizer = build()
names = read_shard(RANK)
for n in range(20):
    x, _ = batch(4)
    y = encode(names[4 * n : 4 * n + 4])
    report(n, step(model, optimizer, x, y))
end()
