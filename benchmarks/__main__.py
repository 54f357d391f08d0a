"""``make bench``: what pairun costs, compared within one run with what cannot be had cheaper."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from benchmarks import commands, diagnose, init_phase, log_path, page, peers, pid1, ssh, tasks
from benchmarks.measure import NotMeasured, Row

_HEAD = ("what", "measured", "goal", "", "ratio", "of")


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print.

    Returns:
        0; 1 with ``--strict`` when a goal was missed, and where CI is set also when something
        could not be measured: nothing there may go unseen.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--strict", action="store_true", help="exit 1 when a goal is missed")
    args = parser.parse_args(argv)
    print(_line(_HEAD))
    missed = unmeasured = 0
    for part in (commands, init_phase, tasks, pid1, log_path, diagnose, ssh, peers, page):
        try:
            for row in part.rows():
                print(_line(_cells(row)), flush=True)
                missed += row.is_over
        except NotMeasured as e:
            unmeasured += 1
            print(f"not measured: {e}", flush=True)
    met = "every goal that was measured is met" if unmeasured else "every goal is met"
    print(f"{missed} goal{'s' * (missed > 1)} missed" if missed else met)
    return 1 if (args.strict and missed) or (unmeasured and os.environ.get("CI")) else 0


def _cells(row: Row) -> tuple[str, ...]:
    ratio = row.measured_ms / row.baseline_ms
    compared = f"{row.baseline} ({_ms(row.baseline_ms)})"
    return (
        row.what,
        _ms(row.measured_ms),
        _ms(row.goal_ms),
        "over" if row.is_over else "ok",
        f"{ratio:.2f}" if ratio >= 0.1 else f"{ratio:.4f}",
        f"{compared}; {row.note}" if row.note else compared,
    )


def _line(cells: Sequence[str]) -> str:
    what, measured, goal, verdict, ratio, rest = cells
    return f"{what:32} {measured:>10} {goal:>10}  {verdict:4} {ratio:>6}  {rest}"


def _ms(value: float) -> str:
    return f"{value:.2f} ms" if value < 100 else f"{value:.0f} ms"


if __name__ == "__main__":
    sys.exit(main())
