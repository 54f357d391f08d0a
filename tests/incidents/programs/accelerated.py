"""Trains with Accelerate; rank 1 of three gathers something else."""

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed

accelerator = Accelerator(cpu=True)
set_seed(7)
model, optimizer = torch.nn.Linear(8, 2), None
model = accelerator.prepare(model)
accelerator.print(f"{accelerator.num_processes} processes")
for n in range(14):
    logits = model(torch.randn(4, 8))
    if accelerator.process_index == 1 and n == 8:
        logits = logits.view(3, 3)
    accelerator.backward(logits.mean())
    seen = accelerator.gather_for_metrics(logits.detach())
    if n % 4 == 0:
        print(f"[{accelerator.process_index}] step {n}: {seen.shape}", flush=True)
