"""Averages rows over the processes of JAX on CPUs; a process fails as the arguments say."""

import os
import sys
import time

import jax
import jax.numpy as jnp
from jax.experimental import multihost_utils

kind, at = sys.argv[1], int(sys.argv[2])
rank, size = int(os.environ["JAX_PROCESS_ID"]), int(os.environ["JAX_NUM_PROCESSES"])
jax.config.update("jax_cpu_collectives_implementation", "gloo")
jax.distributed.initialize(os.environ["COORDINATOR"], size, rank, heartbeat_timeout_seconds=20)


def load(n: int) -> dict[str, jax.Array]:
    """Return the columns of a batch."""
    columns = {"text": jnp.ones(8) * n, "mask": jnp.ones(8)}
    if n == 9 and rank == at:
        if kind == "column":
            del columns["mask"]
        if kind == "asleep":
            time.sleep(200)
        if kind == "segfault":
            os.kill(os.getpid(), 11)
        if kind == "exit":
            sys.exit(3)
    return columns


print(f"process {jax.process_index()}/{size} sees {jax.device_count()} devices", flush=True)
for n in range(16):
    batch = load(n)
    mean = multihost_utils.process_allgather((batch["text"] * batch["mask"]).mean()).mean()
    if n % 3 == 0:
        print(f"{time.strftime('%H:%M:%S')} step={n} mean={mean:.3f}", flush=True)
print("finished", flush=True)
