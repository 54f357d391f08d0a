"""What programs with a loop of their own share: the group, lines in a style, summed gradients."""

import datetime
import json
import os
import sys
import time

import torch
import torch.distributed as dist

RANK = int(os.environ.get("RANK", "0"))
SIZE = int(os.environ.get("WORLD_SIZE", "1"))
STYLE = os.environ.get("LOG_STYLE", "loguru")
SKEW_S = float(os.environ.get("LOG_SKEW_S", "0"))


def say(message: str, level: str = "INFO") -> None:
    """Print a line in the job's style."""
    now = datetime.datetime.now(datetime.UTC).astimezone()
    at = now + datetime.timedelta(seconds=SKEW_S)
    if STYLE == "json":
        fields = {"ts": at.isoformat(), "level": level.lower(), "rank": RANK}
        line = json.dumps({**fields, "msg": message})
    elif STYLE == "glog":
        stamp = at.strftime("%m%d %H:%M:%S.%f")
        line = f"{level[0]}{stamp} {os.getpid():7} pretrain.py:31] {message}"
    elif STYLE == "zone":
        line = f"{at.isoformat(timespec='milliseconds')} [{level}] {message}"
    elif STYLE == "bare":
        line = message
    else:
        stamp = at.strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
        line = f"{stamp} | {level:8} | __main__:main:31 - {message}"
    print(line, flush=True)


def join() -> None:
    """Join the process group."""
    torch.set_num_threads(1)
    say(f"host {os.uname().nodename} starts, {SIZE} in the world")
    limit = datetime.timedelta(seconds=float(os.environ.get("TIMEOUT_S", "90")))
    dist.init_process_group("gloo", timeout=limit)
    say(f"process group is ready (rank {RANK} of {SIZE})")


def reduce_gradients(n: int, size: int = 64) -> float:
    """Sum the gradients of a step over all ranks; returns their mean."""
    gradients = torch.full((size,), float(RANK + n))
    dist.all_reduce(gradients)
    return gradients.mean().item() / SIZE


def report(n: int, steps: int, loss: float) -> None:
    """Print a step."""
    if n % 5 == 0:
        say(f"iteration {n:8}/{steps:8} | lm loss: {loss:.6E} | grad norm: {1 / (n + 1):.3f} |")
    time.sleep(0.03)


def leave() -> None:
    """Leave the group."""
    dist.barrier()
    dist.destroy_process_group()
    say("done")
    sys.exit(0)
