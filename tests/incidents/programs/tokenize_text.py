"""Trains on text; the tokenizer's package is not on every node."""

from training import batch, build, end, log, report, start, step

start()
import wordpieces  # noqa: E402

log.info("tokenizer with %d pieces", len(wordpieces.PIECES))
model, optimizer = build()
for n in range(20):
    report(n, step(model, optimizer, *batch()))
end()
