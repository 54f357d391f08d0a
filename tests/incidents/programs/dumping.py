"""Every rank prints its stacks after 25 s and ends; one searches files for ever."""

import faulthandler
import itertools
import os

import torch
import torch.distributed as dist

faulthandler.dump_traceback_later(25, exit=True)


def find_latest(folder: str) -> str:
    """Return the newest checkpoint, which another program should write."""
    for _ in itertools.count():
        for name in os.listdir(folder):
            if name.endswith(".ckpt"):
                return name
    return ""


def average(x: torch.Tensor) -> None:
    """Average over the ranks."""
    dist.all_reduce(x)


dist.init_process_group("gloo")
for n in range(9):
    average(torch.ones(3))
    print("round", n, flush=True)
    if n == 4 and dist.get_rank() == 4:
        find_latest(".")
