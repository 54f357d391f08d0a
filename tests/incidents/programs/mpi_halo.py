"""Exchanges borders of a grid between ranks of MPI; a rank fails as the arguments say."""

import os
import resource
import sys
import time

import numpy
from mpi4py import MPI

world = MPI.COMM_WORLD
rank, size = world.Get_rank(), world.Get_size()
kind, at = sys.argv[1], int(sys.argv[2])
grid = numpy.full((16, 16), float(rank))


def exchange(n: int) -> None:
    """Swap the outer rows with the neighbours."""
    width = 15 if kind == "shape" and rank == at and n == 8 else 16
    row = numpy.empty(16)
    world.Sendrecv(grid[0], (rank - 1) % size, 0, row, (rank + 1) % size, 0)
    grid[-1, :] = row[:width] + grid[0, :]


print(f"rank {rank} of {size} on {os.uname().nodename}", flush=True)
for n in range(20):
    exchange(n)
    residual = world.allreduce(float(abs(grid).max()))
    if n % 6 == 0:
        print(f"sweep {n} residual {residual:.3f}", flush=True)
    time.sleep(0.03)
    if rank == at and n == 11:
        if kind == "memory":
            resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
            grid = numpy.ones((60_000, 60_000))
        if kind == "code":
            os._exit(7)
        if kind == "killed":
            os.kill(os.getpid(), 9)
        if kind == "stuck":
            time.sleep(1000)
        if kind == "zero":
            os._exit(0)
        if kind == "message":
            print("ERROR: CFL condition violated: dt 0.2 > 0.125", file=sys.stderr, flush=True)
            world.Abort(11)
if rank == 0:
    print("residual below the limit", flush=True)
