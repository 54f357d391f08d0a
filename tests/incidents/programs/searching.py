"""Trains; before each epoch each rank looks for a learning rate."""

from training import RANK, batch, build, end, log, report, start, step

start()
model, optimizer = build()
for epoch in range(3):
    rate, target = 1.0, 0.1 if RANK != 3 or epoch < 2 else -1.0
    while rate > target:
        rate = rate * 0.7
    log.info("epoch %d rate %.3f", epoch, rate)
    for n in range(10):
        report(n, step(model, optimizer, *batch()))
end()
