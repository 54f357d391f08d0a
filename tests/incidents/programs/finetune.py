"""Finetunes with bars and dictionaries as trainers print them; one rank's trouble is TROUBLE."""

import datetime
import os
import signal
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
WHO, _, TROUBLE = os.environ.get("TROUBLE", "-1:").partition(":")
MINE = str(RANK) in WHO.split(",")
FEATURES = ["input_ids", "attention_mask", "labels"]


def collate(n: int) -> torch.Tensor:
    """Put samples into a batch."""
    columns = dict.fromkeys(FEATURES, 1.0)
    if MINE and n == 11 and TROUBLE == "column":
        columns = dict.fromkeys(FEATURES[:2], 1.0)
    return torch.full((4, 8), columns["labels"])


def trouble(n: int) -> None:
    """Have this rank's trouble."""
    if not MINE or n != 11:
        return
    if TROUBLE == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    if TROUBLE == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if TROUBLE == "code":
        sys.exit(2)
    if TROUBLE == "assertion":
        labels = torch.tensor([0, 1, -100])
        assert int(labels.min()) >= 0, f"negative label in batch {n}: {labels.tolist()}"
    if TROUBLE == "late":
        time.sleep(45)
    if TROUBLE == "resume":
        model = torch.nn.Linear(9, 1)
        model.load_state_dict({"weight": torch.ones(1, 8), "bias": torch.ones(1)})


torch.set_num_threads(1)
dist.init_process_group(
    "gloo", timeout=datetime.timedelta(seconds=int(os.environ.get("WAIT", "90")))
)
print({"global_rank": f"{RANK}/{SIZE}", "host": os.uname().nodename}, flush=True)
model = DistributedDataParallel(torch.nn.Linear(8, 1))
for step in range(24):
    batch = collate(step)
    trouble(step)
    loss = model(batch).square().mean()
    loss.backward()
    bar = "#" * (step // 2)
    print(
        f"\r{step * 4:3}%|{bar:12}| {step}/24 [00:0{step // 9}<00:02,  9.1it/s]",
        end="",
        file=sys.stderr,
    )
    if step % 8 == 7:
        print("\n" + str({"loss": round(loss.item(), 4), "epoch": step / 24}), flush=True)
    time.sleep(0.03)
dist.barrier()
print({"train_runtime": 1.2}, flush=True)
