"""``make bench``: what pairun costs, compared within one run with what cannot be had cheaper."""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import sys
from collections.abc import Iterator, Sequence

import pairun
from benchmarks import (
    cluster,
    commands,
    diagnose,
    everywhere,
    incident,
    init_phase,
    log_path,
    measure,
    page,
    peers,
    pid1,
    proportion,
    rendezvous,
    ssh,
    tasks,
    volume,
)
from benchmarks.measure import HEAD, NotMeasured, Row, cells, line
from benchmarks.record import Machine, Measured, Record, merged, record_data, record_of

PARTS = {
    "commands": commands,
    "proportion": proportion,
    "init": init_phase,
    "volume": volume,
    "tasks": tasks,
    "pid1": pid1,
    "logs": log_path,
    "diagnosis": diagnose,
    "incident": incident,
    "rendezvous": rendezvous,
    "ssh": ssh,
    "peers": peers,
    "page": page,
    "cluster": cluster,
    "everywhere": everywhere,
}
"""By name what measures a part: each has a function ``rows``."""


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print.

    Returns:
        0; 1 with ``--strict`` when a goal was missed, and where CI is set also when something
        could not be measured: nothing there may go unseen.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--strict", action="store_true", help="exit 1 when a goal is missed")
    parser.add_argument("--json", action="store_true", help="the results as JSON, when all is done")
    parser.add_argument("--only", action="append", choices=PARTS, help="measure only this part")
    parser.add_argument("--save", type=pathlib.Path, metavar="FILE",
                        help="keep the results in a file, where they replace those of the same parts")  # fmt: skip
    parser.add_argument("--smoke", action="store_true",
                        help="measure each once: whether it can be measured, not what it costs")  # fmt: skip
    args = parser.parse_args(argv)
    if args.smoke:
        measure.most_times = 1
    machine = Machine.here()
    # Standard output is either the table or the document.
    table = sys.stderr if args.json else sys.stdout
    print(machine.sentence(), file=table)
    print(line(HEAD), file=table, flush=True)
    measured: list[Measured] = []
    unmeasured: dict[str, str] = {}
    for name in args.only or PARTS:
        try:
            for row in _rows(name):
                # The load of now, since earlier rows are part of an earlier one.
                measured.append(Measured(name, row, os.getloadavg()[0]))
                print(line(cells(row)), file=table, flush=True)
        except (NotMeasured, FileNotFoundError) as e:
            missing = e.filename if isinstance(e, FileNotFoundError) else None
            unmeasured[name] = f"{name}: {missing} is missing" if missing else str(e)
            print(f"not measured: {unmeasured[name]}", file=table, flush=True)
    missed = sum(m.row.is_over for m in measured)
    met = "every goal that was measured is met" if unmeasured else "every goal is met"
    print(f"{missed} goal{'s' * (missed > 1)} missed" if missed else met, file=table)
    record = Record(pairun.__version__, machine, measured, unmeasured)
    if args.json:
        print(json.dumps(record_data(record), indent=1))
    if args.save:
        kept = record_of(args.save) if args.save.exists() else None
        args.save.write_text(json.dumps(merged(kept, record_data(record)), indent=1) + "\n")
    return 1 if (args.strict and missed) or (unmeasured and os.environ.get("CI")) else 0


def _rows(part: str) -> Iterator[Row]:
    yield from PARTS[part].rows()


if __name__ == "__main__":
    sys.exit(main())
