"""``python -m tests.incidents``: run incidents for real and record what they print."""

from __future__ import annotations

import argparse
import os

from tests.incidents import by_hand, table
from tests.incidents.recording import HERE, record, write_label
from tests.incidents.running import run_inside

RECORDED = os.path.join(HERE, "recorded")


def main() -> None:
    """Record the incidents that are named, or all."""
    parser = argparse.ArgumentParser(prog="python -m tests.incidents", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="an incident; all by default")
    parser.add_argument("--out", default=RECORDED, metavar="DIR", help="where the folders go")
    parser.add_argument("--list", action="store_true", help="say what there is, and run nothing")
    parser.add_argument(
        "--venv",
        default=os.environ.get("INCIDENTS_VENV", os.path.abspath("build/incidents/venv")),
        help="where the packages of requirements.txt are (INCIDENTS_VENV)",
    )
    parser.add_argument("--inside", nargs=4, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.inside:
        name, job, logs, venv = args.inside
        run_inside(table.INCIDENTS[name], job, logs, venv)
        return
    known = [*table.INCIDENTS, *by_hand.INCIDENTS]
    if unknown := set(args.names) - set(known):
        parser.error(f"no such incident: {', '.join(sorted(unknown))}")
    if not args.list and not os.path.exists(os.path.join(args.venv, "bin/torchrun")):
        parser.error(f"{args.venv} has no torch: see tests/incidents/README.md")
    for name in args.names or known:
        run = table.INCIDENTS.get(name)
        label = run.label if run else by_hand.INCIDENTS[name].label
        print(f"{name}: {label.how}", flush=True)
        if args.list:
            continue
        folder = os.path.join(args.out, name)
        if run:
            record(name, run, folder, args.venv)
        else:
            by_hand.write(name, folder)
            write_label(folder, label.data("by hand"))


if __name__ == "__main__":
    main()
