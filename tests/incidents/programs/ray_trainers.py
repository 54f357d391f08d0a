"""Trains with actors of Ray that bear their rank in their name; one fails as the arguments say."""

import os
import sys
import time

import ray

kind, at = sys.argv[1], int(sys.argv[2])


@ray.remote(num_cpus=0.3)
class RayTrainWorker:
    """A worker of a training."""

    def __init__(self, rank: int) -> None:
        self.rank = rank

    def __repr__(self) -> str:
        return f"RayTrainWorker(rank={self.rank})"

    def train(self, steps: int) -> int:
        """Train."""
        for n in range(steps):
            if n % 4 == 0:
                print(f"step {n}")
            if self.rank == at and n == 6:
                if kind == "raises":
                    weights = {"embed": 1.0}
                    print(weights["lm_head"])
                if kind == "killed":
                    os.kill(os.getpid(), 9)
            time.sleep(0.1)
        return self.rank


ray.init(num_cpus=2, include_dashboard=False, object_store_memory=100 << 20)
workers = [RayTrainWorker.remote(rank) for rank in range(4)]
print(ray.get([worker.train.remote(12) for worker in workers]))
