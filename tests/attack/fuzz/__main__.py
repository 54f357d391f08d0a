"""``python -m tests.attack.fuzz``: fuzz for a number of cases or for hours; ``make fuzz`` runs it.

Each input that breaks a promise is written to a file, which ``--file`` runs again.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from pathlib import Path

from tests.attack.fuzz.fuzzing import Finding, findings, verdict_of
from tests.attack.fuzz.targets import TARGETS, warm_up

BATCH = 20


def main() -> int:
    """Fuzz; returns 1 when a promise was broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.attack.fuzz", description=__doc__)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**9))
    parser.add_argument("--cases", type=int, help="how many of each format (default: see --hours)")
    parser.add_argument("--hours", type=float, default=1.0, help="how long without --cases")
    parser.add_argument("--target", action="append", choices=TARGETS, help="only this format")
    parser.add_argument("--out", type=Path, default=Path("build/fuzz"), help="where inputs go")
    parser.add_argument("--file", type=Path, help="run this input of --target, and nothing else")
    args = parser.parse_args()
    targets: list[str] = args.target or list(TARGETS)
    warm_up()
    if args.file:
        verdict = verdict_of(targets[0], args.file.read_bytes())
        print(verdict.output, verdict.broken or "no promise is broken", sep="\n")
        return int(bool(verdict.broken))
    print(f"seed {args.seed}, formats: {', '.join(targets)}", flush=True)
    until = time.monotonic() + args.hours * 3600
    done = broken = 0
    while done < args.cases if args.cases else time.monotonic() < until:
        batch = range(done, min(done + BATCH, args.cases or done + BATCH))
        for target in targets:
            for finding in findings(target, args.seed, batch):
                broken += 1
                _report(finding, args.seed, args.out)
        done = batch.stop
    print(f"{done * len(targets)} cases, {broken} broke a promise")
    return int(broken > 0)


def _report(finding: Finding, seed: int, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{finding.target.replace(' ', '-')}-{seed}-{finding.number}"
    file.write_bytes(finding.data)
    print(f"{finding.target}, case {finding.number}: {finding.verdict.broken}")
    print("\n".join(finding.verdict.output.splitlines()[-6:]))
    print(
        f"  again: python -m tests.attack.fuzz --target '{finding.target}' --file {os.fspath(file)}"
    )
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
