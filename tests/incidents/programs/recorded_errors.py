"""Has torchrun keep the error of each rank (record), under an entry point that logs it, too."""

import logging
import os

import torch
import torch.distributed as dist
from torch.distributed.elastic.multiprocessing.errors import record

logging.basicConfig(level=logging.INFO, format="%(asctime)s [%(process)d] %(message)s")
log = logging.getLogger("train")
ATTEMPT = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))
FAULTS = os.environ["FAULTS"].split()


@record
def main() -> None:
    """Train."""
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    who, _, kind = FAULTS[min(ATTEMPT, len(FAULTS) - 1)].partition(":")
    for n in range(10):
        if str(rank) == who and n == 6:
            if kind == "value":
                raise ValueError(f"bucket {n} of {rank} is empty")
            if kind == "key":
                print({}["cursor"])
            if kind == "segv":
                os.kill(os.getpid(), 11)
            if kind == "exit":
                os._exit(3)
        dist.all_reduce(torch.ones(4))
        if n % 3 == 0:
            log.info("attempt %d, step %d", ATTEMPT, n)


main()
