"""``pairun init``: the entry point of the init container."""

from __future__ import annotations

import argparse
import os

from pairun.base.paths import pai_dir
from pairun.cli.options import add_roots
from pairun.errors import PairunError, Problem
from pairun.init.log import run_under_log


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_roots(parser, "a content root that overrides those of PAIRUN_PATH")
    parser.add_argument("--framework", metavar="FILE",
                        help="a saved Framework object; its addresses are used as they are")  # fmt: skip
    parser.add_argument("--role", metavar="NAME",
                        help="with --framework: the role of this instance")  # fmt: skip
    parser.add_argument("--index", metavar="N",
                        help="with --framework: the index of this instance")  # fmt: skip
    parser.add_argument("--dry-run", action="store_true",
                        help="probe in this container without changing anything")  # fmt: skip


def run(args: argparse.Namespace) -> int:
    """Run the phase; returns the init container's exit code."""
    saved = _saved(args)
    if not args.dry_run:
        code = run_under_log(pai_dir(), os.environ)
        if code is not None:
            return code
    # Only the child that runs the phase imports it: a fork copies each page that is touched later.
    from pairun.init.phase import API_EXIT_CODES, review_phase, run_phase
    from pairun.init.podplans import PodPlans
    from pairun.report.problems import print_problems

    try:
        plans = PodPlans(args.root, {**os.environ, **saved}, args.vault, placed=bool(saved))
        if args.dry_run:
            review_phase(plans)
            return 0
        return run_phase(plans)
    except PairunError as e:
        print_problems(e.problems, args.vault)
        return next((API_EXIT_CODES[p.id] for p in e.problems if p.id in API_EXIT_CODES), 1)


def _saved(args: argparse.Namespace) -> dict[str, str]:
    """Convert the options for a saved Framework to the variables that an engine sets."""
    if args.framework is None:
        if args.role is not None or args.index is not None:
            hint = "without it the platform's variables tell who this is"
            raise PairunError(Problem("PR801", "--role and --index need --framework", hint=hint))
        return {}
    given = {"FC_TASKROLE_NAME": args.role, "FC_TASK_INDEX": args.index}
    named = {name: value for name, value in given.items() if value is not None}
    return {"PAIRUN_FRAMEWORK_FILE": args.framework, **named}
