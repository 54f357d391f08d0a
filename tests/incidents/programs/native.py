"""Trains with a library in C that reads where nothing is."""

import ctypes
import faulthandler
import os

from training import RANK, batch, build, end, report, start, step

if os.environ.get("FAULTHANDLER") == "1":
    faulthandler.enable()
start()
model, optimizer = build()
for n in range(30):
    report(n, step(model, optimizer, *batch()))
    if n == 11 and RANK == 2:
        ctypes.string_at(8)
end()
