"""Averages models after every 20 local steps only, so that ranks can fail one after the other.

FAULTS has a kind for each rank that fails, and its step: ``2=ratio@9 6=column@30``.
"""

import datetime
import logging
import os
import sys
import time
import urllib.request

import torch
import torch.distributed as dist

logging.basicConfig(stream=sys.stderr, level=logging.INFO, format=os.environ.get("FORMAT"))
log = logging.getLogger("local")
RANK = int(os.environ["RANK"])
FAULTS = dict(fault.split("=") for fault in os.environ.get("FAULTS", "").split())
KIND, STEP = (FAULTS.get(str(RANK), "@-1")).split("@")
WEIGHTS = {"train": 0.9, "valid": 0.1}


def mixture(n: int) -> float:
    """Return how much of a batch is of the training data."""
    positive = 0 if KIND == "ratio" else n + 1
    negative = 0 if KIND == "ratio" else 3
    return positive / (positive + negative)


def local_step(n: int) -> float:
    """Do a step without the others."""
    if str(n) == STEP:
        if KIND == "column":
            return WEIGHTS["test"]
        if KIND == "write":
            os.makedirs("/proc/1/samples")
        if KIND == "fetch":
            urllib.request.urlopen("https://data.example.com/part-3.tar", timeout=5).read()
        if KIND == "assert":
            assert WEIGHTS["valid"] > 0.5, f"shard {RANK} has too few samples: {len(WEIGHTS)}"
        if KIND == "settings":
            open("settings/optimizer.toml").close()
        if KIND == "kept":
            kept = [torch.ones(4_000_000) for _ in range(200)]
            log.info("kept %d", len(kept))
        if KIND == "term":
            raise TimeoutError("lease of the shard was not renewed")
        if KIND == "quiet":
            os._exit(5)
        return mixture(n)
    return 1 / (n + 1)


def warn(n: int) -> None:
    """Report what is handled."""
    try:
        os.stat(f"cache/{n}")
    except OSError as error:
        log.log(logging.ERROR, "cache is cold, reading the source instead: %s", error)


def main() -> None:
    """Train."""
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=90))
    log.info("replica %s", os.uname().nodename)
    for n in range(60):
        loss = local_step(n)
        time.sleep(0.05)
        if n % 20 == 19:
            warn(n)
            dist.all_gather_object([None] * dist.get_world_size(), {"loss": loss})
            log.info("round %d averaged, loss=%.3f", n // 20, loss)
    dist.barrier()
    log.info("model saved")


main()
