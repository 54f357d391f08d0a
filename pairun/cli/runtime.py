"""``pairun runtime``: the entry point of the user's container."""

from __future__ import annotations

import argparse

from pairun.base.paths import pai_dir
from pairun.runtime.main import main


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments: the shared volume says everything else."""
    parser.add_argument("--dry-run", action="store_true",
                        help="probe where this stands, and change nothing")  # fmt: skip


def run(args: argparse.Namespace) -> int:
    """Run the runtime phase and return the container's exit code."""
    return _review(pai_dir()) if args.dry_run else main(pai_dir())


def _review(root: str) -> int:
    import os
    import sys

    from pairun.contract.loading import plan_loader
    from pairun.handover.plans import read_plan
    from pairun.host.worlds import ProbeContext
    from pairun.report.review_text import ReviewText, summary
    from pairun.review.taskreview import review_plan

    plan, vault = read_plan(root)
    context = ProbeContext(env=dict(os.environ), pai_dir=root)
    tasks = review_plan(plan, plan_loader(plan.modules), context)
    text = ReviewText(sys.stdout, vault)
    text.phase("runtime", tasks)
    text.line(summary({"runtime": tasks}))
    return 0
