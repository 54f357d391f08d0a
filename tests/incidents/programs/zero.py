"""Trains under DeepSpeed's launcher; one rank fails as the arguments say."""

import os
import signal
import sys

import torch.distributed as dist
from ownloop import RANK, join, leave, reduce_gradients, report

kind, at = sys.argv[-2], int(sys.argv[-1])


def partition(sizes: list[int], parts: int) -> list[int]:
    """Return the sizes of the partitions of the parameters."""
    return [sizes[n] for n in range(parts)]


join()
for n in range(20):
    if at == RANK and n == 8:
        if kind == "raises":
            partition([64, 64, 64], dist.get_world_size())
        if kind == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
    report(n, 20, reduce_gradients(n))
leave()
