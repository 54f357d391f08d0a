"""Trains as a configuration says that rank 0 reads for all."""

import json

import torch.distributed as dist
from training import RANK, batch, build, end, log, report, start, step

config = json.load(open("config.json")) if RANK == 0 else None
start()
configs = [config]
dist.broadcast_object_list(configs)
log.info("configuration %s", configs[0])
model, optimizer = build()
for n in range(configs[0]["steps"]):
    report(n, step(model, optimizer, *batch()))
end()
