"""What the training programs share: the process group, a model, logging, and the loop."""

import datetime
import logging
import os
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

log = logging.getLogger("train")
RANK = int(os.environ.get("RANK", "0"))


def start(timeout_s: float = 12) -> None:
    """Join the process group."""
    times = "%(asctime)s " if os.environ.get("LOG_TIMES", "1") == "1" else ""
    rank = f"[rank {RANK}] " if os.environ.get("LOG_RANKS", "1") == "1" else ""
    logging.basicConfig(
        stream=sys.stdout, level=logging.INFO, format=f"{times}%(levelname)s {rank}%(message)s"
    )
    torch.set_num_threads(1)
    torch.manual_seed(1234)
    log.info("joining the group of %s", os.environ.get("WORLD_SIZE", "1"))
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=timeout_s))
    log.info("joined as %d of %d", dist.get_rank(), dist.get_world_size())


class Descent:
    """Gradient descent, without what torch.optim imports."""

    def __init__(self, model: torch.nn.Module, rate: float = 0.1) -> None:
        self._model = model
        self._rate = rate

    def step(self) -> None:
        """Apply the gradients and clear them."""
        with torch.no_grad():
            for parameter in self._model.parameters():
                if parameter.grad is not None:
                    parameter.sub_(self._rate * parameter.grad)
                    parameter.grad = None


def build(features: int = 16) -> tuple[torch.nn.Module, Descent]:
    """Return a model whose gradients are averaged, and its optimizer."""
    layers = torch.nn.Sequential(
        torch.nn.Linear(features, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4)
    )
    model = DistributedDataParallel(layers)
    return model, Descent(model)


def step(model: torch.nn.Module, optimizer: Descent, x: torch.Tensor, y: torch.Tensor) -> float:
    """Learn from one batch; returns the loss."""
    loss = torch.nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return loss.item()


def batch(size: int = 8, features: int = 16) -> tuple[torch.Tensor, torch.Tensor]:
    """Return a batch of random data."""
    return torch.randn(size, features), torch.randint(0, 4, (size,))


def report(n: int, loss: float, every: int = 5) -> None:
    """Print a step."""
    if n % every == 0:
        log.info("step %d loss %.4f", n, loss)
    time.sleep(0.02)


def end() -> None:
    """Leave the process group."""
    dist.barrier()
    log.info("training finished")
    dist.destroy_process_group()
