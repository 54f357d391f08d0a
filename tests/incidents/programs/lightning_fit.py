"""Fits a model with Lightning; a batch of the second epoch has a label out of range."""

import sys

import lightning
import torch
from torch.utils.data import DataLoader, TensorDataset


class Classifier(lightning.LightningModule):
    """A linear classifier."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(16, 4)

    def training_step(self, batch: list[torch.Tensor], n: int) -> torch.Tensor:
        """Return the loss of a batch."""
        x, y = batch
        return torch.nn.functional.cross_entropy(self.layer(x), y)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Return the optimizer."""
        return torch.optim.SGD(self.parameters(), lr=0.1)


labels = torch.arange(256) % 4
if sys.argv[1:] == ["damaged"]:
    labels[201] = 7
data = TensorDataset(torch.randn(256, 16), labels)
trainer = lightning.Trainer(
    accelerator="cpu", devices=2, strategy="ddp", max_epochs=2, logger=False,
    enable_checkpointing=False, enable_progress_bar=False,
)  # fmt: skip
trainer.fit(Classifier(), DataLoader(data, batch_size=16))
