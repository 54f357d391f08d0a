"""Trains under torchrun; fails as the first argument says, at some attempts."""

import os
import sys

import torch
from torch.distributed.elastic.multiprocessing.errors import record
from training import RANK, batch, build, end, log, report, start, step

ATTEMPT = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))


def augment(x: torch.Tensor, crop: int) -> torch.Tensor:
    """Cut a window out of each sample."""
    return x.view(8, 4, 4)[:, crop : crop + 2, :].reshape(8, 2, 4).view(8, 16)


@record
def main() -> None:
    """Train."""
    start(60)
    log.info("attempt %d", ATTEMPT)
    model, optimizer = build()
    for n in range(12):
        x, y = batch()
        if n == 7 and RANK == 1 and (sys.argv[1:] != ["heals"] or ATTEMPT == 0):
            x = augment(x, 1)
        report(n, step(model, optimizer, x, y))
    end()


main()
