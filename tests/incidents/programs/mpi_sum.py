"""Sums over ranks with MPI; a rank fails as the first argument says."""

import ctypes
import os
import sys
import time

from mpi4py import MPI

world = MPI.COMM_WORLD
rank, size = world.Get_rank(), world.Get_size()
table = {n: n * n for n in range(40)}
if rank == 2 and sys.argv[1:] == ["raises"]:
    del table[25]
for n in range(40):
    total = world.allreduce(table[n])
    if n % 10 == 0 and rank == 0:
        print(f"iteration {n}: sum {total} over {size} ranks", flush=True)
    time.sleep(0.02)
    if n == 22 and rank == 1:
        if sys.argv[1:] == ["abort"]:
            print("residual is not finite, giving up", flush=True)
            world.Abort(3)
        if sys.argv[1:] == ["exits"]:
            os._exit(1)
        if sys.argv[1:] == ["killed"]:
            os.kill(os.getpid(), 9)
        if sys.argv[1:] == ["crashes"]:
            ctypes.string_at(16)
if rank == 0:
    print("converged", flush=True)
