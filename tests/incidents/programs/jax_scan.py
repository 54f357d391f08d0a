"""Scans over time steps on the processes of JAX; one has a state of another kind."""

import os

import jax
import jax.numpy as jnp
from jax.experimental import multihost_utils

rank = int(os.environ["JAX_PROCESS_ID"])
jax.distributed.initialize(os.environ["COORDINATOR"], int(os.environ["JAX_NUM_PROCESSES"]), rank)
for n in range(10):
    state = jnp.zeros(4, "int32" if n == 6 and rank == 3 else "float32")
    state, _ = jax.lax.scan(lambda s, x: (s + x * 0.5, x), state, jnp.ones((5, 4)))
    multihost_utils.sync_global_devices(f"segment-{n}")
    print("segment", n, "of 10", flush=True)
