"""Trains with the flight recorder on (TORCH_FR_BUFFER_SIZE), which each rank dumps in the end."""

import os
import sys
import threading
import time

import torch
import torch.distributed as dist
from torch._C import _distributed_c10d
from training import RANK, log, start


def dump_later() -> None:
    """Dump the recorder's entries, as a watchdog does."""
    time.sleep(float(os.environ["DUMP_AFTER_S"]))
    if sys.argv[1] == "json":
        text = _distributed_c10d._dump_fr_trace_json()
    else:
        text = _distributed_c10d._dump_fr_trace()
    with open(f"dumps/{sys.argv[2]}_{RANK}{'.json' if sys.argv[1] == 'json' else ''}", "wb") as f:
        f.write(text)


start(15)
os.makedirs("dumps", exist_ok=True)
threading.Thread(target=dump_later).start()
losses = torch.zeros(64)
skipping = int(os.environ.get("SKIPPING_RANK", "-1")) == RANK
for n in range(40):
    if n == 23 and skipping:
        log.info("no samples are left in this shard")
        time.sleep(600)
    dist.all_reduce(losses)
    if n % 5 == 0:
        log.info("step %d", n)
    time.sleep(0.02)
log.info("finished")
