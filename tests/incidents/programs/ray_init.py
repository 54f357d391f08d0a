"""Starts actors of Ray whose model does not load."""

import json

import ray


@ray.remote
class Replica:
    """A replica of a model."""

    def __init__(self, path: str) -> None:
        with open(path) as f:
            self.config = json.load(f)

    def predict(self, x: float) -> float:
        """Return a prediction."""
        return x * self.config["scale"]


ray.init(num_cpus=2, include_dashboard=False, object_store_memory=100 << 20)
replicas = [Replica.remote("/models/flowers/config.json") for _ in range(2)]
print(ray.get([replica.predict.remote(2.0) for replica in replicas]))
