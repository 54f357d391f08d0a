"""Trains with actors of Ray that say their rank in their first line only."""

import os
import sys
import time

import ray

kind, at = sys.argv[1], int(sys.argv[2])
LANES = ("left", "right")


@ray.remote(num_cpus=0.3)
class Worker:
    """A worker."""

    def setup(self, rank: int, size: int) -> None:
        """Learn the rank."""
        self.rank = rank
        print(f"rank {rank} of {size} is ready, pid {os.getpid()}")

    def run(self, n: int) -> int:
        """Do a round."""
        time.sleep(0.1)
        if self.rank == at and n == 7:
            if kind == "raises":
                print(LANES[n])
            if kind == "killed":
                os.kill(os.getpid(), 9)
            if kind == "asleep":
                time.sleep(300)
            if kind == "logged":
                print("ERROR: lane 7 is closed, worker gives up", file=sys.stderr)
                os._exit(0)
        if n % 3 == 0:
            print(f"round {n} done")
        return n


ray.init(num_cpus=2, include_dashboard=False, object_store_memory=100 << 20)
workers = [Worker.remote() for _ in range(3)]
ray.get([worker.setup.remote(rank, 3) for rank, worker in enumerate(workers)])
for n in range(10):
    print(f"driver: round {n} has {sum(ray.get([w.run.remote(n) for w in workers], timeout=25))}")
