"""Trains under torchrun: rank 1 is killed in the first attempt, rank 0 fails in the second."""

import os
import signal

import torch
import torch.distributed as dist

rank, attempt = int(os.environ["RANK"]), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
dist.init_process_group("gloo")
print(f"rank {rank} attempt {attempt}", flush=True)
for n in range(10):
    if n == 6 and rank == 1 and attempt == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    if n == 3 and rank == 0 and attempt == 1:
        resume = {"epoch": 2}
        print("resume at", resume["step"], flush=True)
    dist.all_reduce(torch.ones(2))
    print(f"rank {rank} batch {n}", flush=True)
