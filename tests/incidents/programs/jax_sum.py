"""Sums over the processes of JAX on CPUs; one fails as the second argument says."""

import logging
import os
import sys
import time

import jax
import jax.numpy as jnp
from jax.experimental import multihost_utils

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(levelname)s %(message)s")
log = logging.getLogger("train")
rank, size = int(os.environ["JAX_PROCESS_ID"]), int(os.environ["JAX_NUM_PROCESSES"])
jax.config.update("jax_cpu_collectives_implementation", "gloo")
jax.distributed.initialize(
    os.environ["COORDINATOR"],
    size,
    rank,
    initialization_timeout=int(os.environ.get("WAIT_S", "30")),
)
log.info("process %d of %d, %d devices", jax.process_index(), size, jax.device_count())
weights = jnp.ones((16, 4))
width = 12 if rank == 2 and sys.argv[1:] == ["raises"] else 16
for n in range(20):
    x = jnp.ones((8, width if n >= 8 else 16)) * rank
    y = jax.jit(jnp.matmul)(x, weights)
    total = multihost_utils.process_allgather(y.sum()).sum()
    if n % 5 == 0:
        log.info("step %d total %.1f", n, total)
    time.sleep(0.02)
    if n == 12 and rank == 3 and sys.argv[1:] == ["lost"]:
        os.kill(os.getpid(), 9)
log.info("finished")
