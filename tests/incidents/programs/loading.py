"""Trains with a DataLoader of two worker processes, whose data sets differ by the argument."""

import os
import signal
import sys

import torch
from torch.utils.data import DataLoader, Dataset

FILES = []


class Images(Dataset):
    """Images of noise."""

    def __init__(self, side: int) -> None:
        self.side = side

    def __len__(self) -> int:
        return 400

    def __getitem__(self, n: int) -> tuple[torch.Tensor, int]:
        return torch.ones(3, self.side, self.side), n % 10


class Records(Images):
    """Records that are parsed when they are read."""

    def __getitem__(self, n: int) -> tuple[torch.Tensor, int]:
        text = "1.5,2.5,3.5" if n != 133 else "1.5,,3.5"
        return torch.tensor([float(field) for field in text.split(",")]), n % 10


class Cached(Images):
    """Images whose reader is killed by the node."""

    def __getitem__(self, n: int) -> tuple[torch.Tensor, int]:
        if n == 90:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().__getitem__(n)


class Files(Images):
    """Images whose files stay open."""

    def __getitem__(self, n: int) -> tuple[torch.Tensor, int]:
        FILES.append(open(__file__))
        return super().__getitem__(n)


if __name__ == "__main__":
    torch.set_num_threads(1)
    data = {"images": Images, "records": Records, "cached": Cached, "files": Files}[sys.argv[1]]
    loader = DataLoader(data(64), batch_size=32, num_workers=2, shuffle=False)
    for epoch in range(2):
        for n, (x, _y) in enumerate(loader):
            if n % 2 == 0:
                print(f"Epoch [{epoch}/2][{n}/{len(loader)}] mean {x.mean().item():.3f}")
    print("Finished training")
