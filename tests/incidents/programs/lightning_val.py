"""Fits with Lightning on three ranks; the validation of one of them fails."""

import os

import lightning
import torch
from torch.utils.data import DataLoader, TensorDataset


class Regressor(lightning.LightningModule):
    """A linear regression."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(8, 1)
        self.names = ["mse", "mae"]

    def training_step(self, batch: list[torch.Tensor], n: int) -> torch.Tensor:
        """Return the loss of a batch."""
        return self.layer(batch[0]).square().mean()

    def validation_step(self, batch: list[torch.Tensor], n: int) -> None:
        """Log the metrics of a batch."""
        wanted = "rmse" if self.global_rank == 2 and self.current_epoch == 1 else "mse"
        self.log(f"val/{self.names.index(wanted)}", self.layer(batch[0]).mean())

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Return the optimizer."""
        return torch.optim.SGD(self.parameters(), lr=0.1)


data = TensorDataset(torch.randn(96, 8))
trainer = lightning.Trainer(
    accelerator="cpu", devices=3, strategy="ddp", max_epochs=3, logger=False,
    enable_checkpointing=False, enable_progress_bar=False, num_sanity_val_steps=0,
)  # fmt: skip
print(f"pid {os.getpid()} of local rank {os.environ.get('LOCAL_RANK', '0')}")
trainer.fit(Regressor(), DataLoader(data, batch_size=8), DataLoader(data, batch_size=8))
