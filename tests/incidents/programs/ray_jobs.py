"""Ray tasks and actors on one node; what fails is the first argument."""

import os
import sys
import time

import numpy
import ray

kind = sys.argv[1]


@ray.remote(max_retries=0)
def parse(n: int) -> float:
    """Parse a record."""
    fields = f"{n};{n * 2}".split(";" if n != 3 else ",")
    return float(fields[0]) / float(fields[1])


@ray.remote
class Trainer:
    """A worker of a training."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.kept = []

    def step(self, n: int) -> float:
        """Do a step."""
        if n % 2 == 0:
            print(f"trainer {self.rank} step {n}")
        if self.rank == 1 and n == 4 and kind == "actor":
            os._exit(1)
        if self.rank == 1 and kind == "memory":
            self.kept.append(numpy.ones(12_000_000))
        time.sleep(0.05)
        return 1 / (n + 1)


@ray.remote(num_gpus=1)
def train_on_gpu() -> int:
    """Train."""
    return 0


@ray.remote(max_retries=3)
def flaky(folder: str, n: int) -> int:
    """Fail at the first attempt."""
    seen = os.path.join(folder, f"seen-{n}")
    if n == 2 and not os.path.exists(seen):
        open(seen, "w").close()
        os._exit(1)
    return n


ray.init(num_cpus=2, include_dashboard=False, object_store_memory=100 << 20)
if kind == "task":
    print(sum(ray.get([parse.remote(n) for n in range(1, 6)])))
elif kind == "heals":
    print(ray.get([flaky.remote(os.getcwd(), n) for n in range(4)]))
    print("all tasks finished")
elif kind == "gpu":
    print(ray.get(train_on_gpu.remote(), timeout=20))
else:
    trainers = [Trainer.remote(rank) for rank in range(2)]
    for n in range(8 if kind == "actor" else 60):
        losses = ray.get([trainer.step.remote(n) for trainer in trainers])
        print(f"step {n} loss {sum(losses):.3f}")
