"""Trains with a library in C that checks its own state."""

import ctypes

from training import RANK, batch, build, end, report, start, step

start()
model, optimizer = build()
libc = ctypes.CDLL(None)
for n in range(30):
    report(n, step(model, optimizer, *batch()))
    if n == 13 and RANK == 0:
        libc.__assert_fail(b"used <= capacity", b"ring.c", 118, b"ring_put")
end()
