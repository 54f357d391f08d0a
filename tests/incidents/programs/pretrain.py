"""Trains with a loop of its own; FAULT happens to the ranks of FAULT_RANKS at FAULT_STEP."""

import ctypes
import faulthandler
import math
import os
import queue
import signal
import sys
import threading
import time

import numpy
import torch
from ownloop import RANK, join, leave, reduce_gradients, report, say

FAULT = os.environ.get("FAULT", "")
HIT = str(RANK) in os.environ.get("FAULT_RANKS", "").split(",")
AT = int(os.environ.get("FAULT_STEP", "13"))
STEPS = 30
KEPT: list[numpy.ndarray] = []


class Vocabulary:
    """The tokens of a tokenizer."""

    def __init__(self, size: int) -> None:
        self.size = size

    def check(self, tokens: list[int]) -> None:
        """Refuse a token that the embedding has no row for."""
        for token in tokens:
            if token >= self.size:
                raise ValueError(f"token id {token} is outside of the vocabulary of {self.size}")


class Samples(torch.utils.data.Dataset):
    """Samples that a worker process reads."""

    def __len__(self) -> int:
        return 400

    def __getitem__(self, n: int) -> torch.Tensor:
        if FAULT == "loader" and HIT and n == 60:
            os.kill(os.getpid(), signal.SIGKILL)
        return torch.full((4,), float(n))


def prefetched(batches: "queue.Queue[int]") -> int:
    """Take the next batch from the prefetching thread."""
    return batches.get()


def read_batch(n: int) -> list[int]:
    """Return the tokens of a step."""
    if FAULT == "stuck":
        return [prefetched(queue.Queue())]
    if FAULT == "deadlock":
        lock = threading.Lock()
        lock.acquire()
        say("flushing the metrics")
        lock.acquire()
    if FAULT == "asleep":
        say(f"reading part-{RANK:05}.parquet", "WARNING")
        time.sleep(float(os.environ.get("SLEEP_S", "60")))
    return [n, n + 1, 50260 if FAULT == "vocabulary" else n + 2]


def save_part(n: int) -> None:
    """Save this rank's part of the optimizer."""
    folder = f"parts/{RANK}" if FAULT == "disk" else "/proc/sys/parts"
    with open(f"{folder}/optimizer-{n}.npy", "wb") as f:
        numpy.save(f, numpy.ones(300_000))


def before(n: int) -> float:
    """Do what this rank does before the gradients are summed; returns the local loss."""
    loss = 1 / (n + 1)
    if not HIT or n < AT:
        return loss
    if FAULT == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif FAULT == "term":
        os.kill(os.getpid(), signal.SIGTERM)
    elif FAULT == "segfault":
        ctypes.string_at(8)
    elif FAULT == "abort":
        ctypes.CDLL(None).abort()
    elif FAULT == "leave":
        say("no more documents for this rank, leaving")
        sys.exit(0)
    elif FAULT == "exit":
        sys.exit(int(os.environ.get("FAULT_CODE", "1")))
    elif FAULT == "nan":
        loss = float("nan")
    elif FAULT in {"disk", "proc"}:
        save_part(n)
    elif FAULT == "grow":
        KEPT.append(numpy.ones(8_000_000))
    elif FAULT == "library":
        ctypes.CDLL("libnvjpeg.so.12")
    elif FAULT == "recursion":
        return before(n)
    else:
        Vocabulary(50257).check(read_batch(n))
    if math.isnan(loss):
        raise FloatingPointError(f"loss is {loss} at iteration {n}, lr 3.0e-04")
    return loss


def main() -> None:
    """Train."""
    if os.environ.get("FAULTHANDLER"):
        faulthandler.enable()
    if FAULT == "late" and HIT:
        say("copying the data set to /local")
        time.sleep(float(os.environ.get("SLEEP_S", "60")))
    if FAULT == "import" and HIT:
        import flash_layers  # noqa: F401
    join()
    batches = (
        iter(torch.utils.data.DataLoader(Samples(), 4, num_workers=1))
        if FAULT == "loader"
        else None
    )
    for n in range(STEPS if FAULT != "grow" else 400):
        if batches is not None:
            next(batches)
        loss = before(n)
        if FAULT == "size" and HIT and n == AT:
            reduce_gradients(n, 48)
        try:
            report(n, STEPS, loss + reduce_gradients(n))
        except RuntimeError:
            if os.environ.get("EMERGENCY"):
                say("a peer is gone, saving an emergency checkpoint", "ERROR")
                open(f"/mnt/emergency/rank-{RANK}.pt", "wb")
            raise
    leave()


main()
