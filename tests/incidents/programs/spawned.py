"""Starts its ranks by torch.multiprocessing; one fails as the argument says."""

import os
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing

EDGES = [[0, 1], [1, 2], [2, 0]]


def gather_edges(rank: int, n: int) -> torch.Tensor:
    """Return the edges of a part of the graph."""
    nodes = torch.arange(3 if rank == 2 and n == 6 else 12)
    return nodes[torch.tensor(EDGES) + 1].float().sum()


def work(rank: int, size: int, kind: str) -> None:
    """Train as one rank."""
    dist.init_process_group("gloo", "tcp://127.0.0.1:29501", rank=rank, world_size=size)
    for n in range(12):
        total = torch.ones(4) * (gather_edges(rank, n) if kind == "raises" else 1.0)
        if kind == "killed" and rank == 1 and n == 7:
            os.kill(os.getpid(), 9)
        dist.all_reduce(total)
        print(f"[{rank}] epoch {n} total {total[0]:.1f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    torch.multiprocessing.spawn(work, (4, sys.argv[1]), nprocs=4)
