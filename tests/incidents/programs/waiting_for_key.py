"""Every rank announces its data in a store and waits for all others; one is late."""

import datetime
import os
import time

import torch.distributed as dist
from ownloop import RANK, SIZE, say

store = dist.TCPStore(
    os.environ["MASTER_ADDR"], 29600, SIZE, RANK == 0, datetime.timedelta(seconds=60)
)
store.set_timeout(datetime.timedelta(seconds=12))
say("connected to the store")
if str(RANK) == os.environ.get("FAULT_RANKS"):
    say("building the index of wiki-2026.bin")
    time.sleep(60)
store.set(f"data/{RANK}", "ready")
store.wait([f"data/{rank}" for rank in range(SIZE)])
say("all data are ready")
