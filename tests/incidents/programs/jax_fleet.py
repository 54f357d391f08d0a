"""Sums over the processes of JAX; TROUBLE is RANK:KIND. absl logs."""

import os
import signal
import time

import jax
import jax.numpy as jnp
from absl import logging
from jax.experimental import multihost_utils

rank, size = int(os.environ["JAX_PROCESS_ID"]), int(os.environ["JAX_NUM_PROCESSES"])
who, _, kind = os.environ["TROUBLE"].partition(":")
logging.set_verbosity("info")
logging.use_absl_handler()
jax.config.update("jax_cpu_collectives_implementation", "gloo")
jax.distributed.initialize(os.environ["COORDINATOR"], size, rank, heartbeat_timeout_seconds=15)


def step(n: int) -> jax.Array:
    """Do a step."""
    if str(rank) == who and n == 7:
        if kind == "raises":
            return jnp.ones(3) + {"bias": 1}["weight"]
        if kind == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if kind == "asleep":
            time.sleep(300)
    return multihost_utils.process_allgather(jnp.ones(2) * n).sum()


try:
    logging.info("%d devices, %d local", jax.device_count(), jax.local_device_count())
    for n in range(12):
        total = step(n)
        if n % 3 == 0:
            logging.info("step %d total %.1f", n, total)
except Exception:  # noqa: BLE001 - it logs what it is
    logging.exception("train loop failed")
    os._exit(1)
logging.info("done")
