"""Trains with options."""

import argparse

from training import batch, build, end, report, start, step

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=10)
parser.add_argument("--learning-rate", type=float, default=0.1)
args = parser.parse_args()
start()
model, optimizer = build()
for n in range(args.steps):
    report(n, step(model, optimizer, *batch()))
end()
