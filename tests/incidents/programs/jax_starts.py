"""Starts processes of JAX, of which one fails early, or late."""

import logging
import os
import signal
import sys
import time

import jax
import jax.numpy as jnp
from jax.experimental import multihost_utils

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
log = logging.getLogger("train")
rank, size = int(os.environ["JAX_PROCESS_ID"]), int(os.environ["JAX_NUM_PROCESSES"])
if sys.argv[1] == "early" and rank == 0:
    import orbital_checkpoints  # noqa: F401
jax.config.update("jax_cpu_collectives_implementation", "gloo")
jax.distributed.initialize(os.environ["COORDINATOR"], size, rank, initialization_timeout=30)
log.info("process %d of %d", rank, size)
for n in range(30):
    total = multihost_utils.process_allgather(jnp.ones(4) * rank).sum()
    if n % 5 == 0:
        log.info("step %d total %.1f", n, total)
    time.sleep(0.05)
    if sys.argv[1] == "late" and rank == 0 and n == 17:
        os.kill(os.getpid(), signal.SIGKILL)
log.info("finished")
