"""Begins on every process of JAX; process 0 may not read its token."""

import os

import jax

rank, size = int(os.environ["JAX_PROCESS_ID"]), int(os.environ["JAX_NUM_PROCESSES"])
print(f"worker {rank} starts on {os.uname().nodename}", flush=True)
if rank == int(os.environ["WITHOUT_TOKEN"]):
    with open("/proc/1/mem", "wb") as f:
        f.write(b"token")
jax.distributed.initialize(os.environ["COORDINATOR"], size, rank, initialization_timeout=30)
print("initialized", flush=True)
