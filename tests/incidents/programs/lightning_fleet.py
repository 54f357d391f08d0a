"""Fits with Lightning on three ranks; the loader of one of them fails in its worker."""

import lightning
import torch
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):
    """Rows, one of which is short."""

    def __len__(self) -> int:
        return 96

    def __getitem__(self, n: int) -> torch.Tensor:
        row = [1.0] * 8
        if n == 61:
            row = row[:5]
        return torch.tensor([row[column] for column in range(8)])


class Model(lightning.LightningModule):
    """A linear model."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(8, 1)

    def training_step(self, batch: torch.Tensor, n: int) -> torch.Tensor:
        """Return the loss of a batch."""
        return self.layer(batch).square().mean()

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Return the optimizer."""
        return torch.optim.SGD(self.parameters(), lr=0.1)


trainer = lightning.Trainer(
    accelerator="cpu", devices=3, strategy="ddp", max_epochs=3, logger=False,
    enable_checkpointing=False, enable_progress_bar=False,
)  # fmt: skip
trainer.fit(Model(), DataLoader(Rows(), batch_size=4, num_workers=1))
