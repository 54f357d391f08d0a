"""Stands in for ``pairun tasks``: does what the test wrote into ``fake.json`` on the volume.

Keys: ``tasks`` and ``handlers`` (the answer, or null for none), ``run`` (a shell command per part).
"""

import argparse
import json
import os
import signal
import subprocess
import sys

parser = argparse.ArgumentParser()
parser.add_argument("command")
parser.add_argument("pai_dir")
parser.add_argument("--part")
parser.add_argument("--state-in", type=int)
parser.add_argument("--state-out", type=int)
args = parser.parse_args()

# Like the real one it outlives a stop; what it runs starts with the default again.
signal.signal(signal.SIGTERM, lambda *_: None)
signal.signal(signal.SIGINT, lambda *_: None)
signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGTERM, signal.SIGINT, signal.SIGHUP))

with open(os.path.join(args.pai_dir, "fake.json"), encoding="utf-8") as f:
    wanted = json.load(f)
if args.part == "handlers":
    with open(args.state_in, encoding="utf-8") as f:
        print(f"{args.part} asked", json.dumps(json.load(f), sort_keys=True), flush=True)
print(f"{args.part} ran", flush=True)
if shell := wanted.get("run", {}).get(args.part):
    code = subprocess.run(["bash", "-c", shell], check=False).returncode
    if code:
        sys.exit(code)
if (answer := wanted.get(args.part)) is not None:
    with open(args.state_out, "w", encoding="utf-8") as f:
        json.dump(answer, f)
