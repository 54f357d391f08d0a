"""Trains on one process and saves a checkpoint after each epoch."""

import logging
import os
import sys

import torch

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
log = logging.getLogger("train")
torch.manual_seed(7)
model = torch.nn.Sequential(torch.nn.Linear(64, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10))
os.makedirs("checkpoints", exist_ok=True)
latest = "checkpoints/latest.pt"
if os.path.exists(latest):
    log.info("resuming from %s", latest)
    model.load_state_dict(torch.load(latest, weights_only=True))
rate = float(sys.argv[1]) if len(sys.argv) > 1 else 0.05
for epoch in range(8):
    for _ in range(10):
        x = torch.randn(32, 64)
        loss = torch.nn.functional.mse_loss(model(x), x[:, :10].exp())
        if not torch.isfinite(loss):
            raise FloatingPointError(f"loss is {loss.item()} in epoch {epoch}")
        model.zero_grad()
        loss.backward()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.sub_(rate * parameter.grad)
    log.info("epoch %d loss %.5f", epoch, loss.item())
    torch.save(model.state_dict(), f"checkpoints/epoch-{epoch}.pt")
    log.info("saved checkpoints/epoch-%d.pt", epoch)
log.info("done")
