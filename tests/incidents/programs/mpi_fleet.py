"""Sums with mpi4py; the arguments are the kind of trouble and its rank."""

import sys
import time

from mpi4py import MPI

kind, at = sys.argv[1], int(sys.argv[2])
world = MPI.COMM_WORLD
rank, size = world.Get_rank(), world.Get_size()
print(f"rank {rank} of {size} on {MPI.Get_processor_name()}", flush=True)


def solve(n: int) -> float:
    """Solve a part."""
    if rank == at and n == 9:
        if kind == "asleep":
            time.sleep(600)
        if kind == "refused":
            print(f"solver: rank {rank}: matrix is singular at pivot 3, no result", file=sys.stderr)
            world.send(None, 0, tag=n)
            time.sleep(600)
    return 1.0 / (n + rank + 1)


for n in range(20):
    part = solve(n)
    if kind == "refused":
        if rank:
            world.send(part, 0, tag=n)
        else:
            parts = [part] + [world.recv(source=peer, tag=n) for peer in range(1, size)]
            if None in parts:
                print(f"master: missing a part in round {n}, aborting", flush=True)
                world.Abort(5)
    else:
        part = world.allreduce(part)
    if n % 3 == 0:
        print(f"iteration {n} residual {part:.3e}", flush=True)
    time.sleep(0.02)
