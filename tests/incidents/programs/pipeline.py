"""Passes activations from rank to rank; one rank waits for its reader and never sends."""

import queue

import torch
import torch.distributed as dist
from training import RANK, end, log, start

start()
size = dist.get_world_size()
samples: queue.Queue[int] = queue.Queue()
for n in range(25 if RANK == 2 else 60):
    samples.put(n)
for n in range(40):
    x = torch.zeros(32)
    if RANK > 0:
        dist.recv(x, RANK - 1)
    x += samples.get()
    if size - 1 > RANK:
        dist.send(x, RANK + 1)
    if n % 5 == 0:
        log.info("microbatch %d", n)
end()
