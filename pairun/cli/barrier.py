"""``pairun barrier wait NAME``: a barrier across all instances, for the user's own code."""

from __future__ import annotations

import argparse

from pairun.base.paths import pai_dir
from pairun.cli.options import duration_s
from pairun.errors import PairunError, Problem
from pairun.rendezvous.board import MAX_NAME
from pairun.rendezvous.peers import peers_of
from pairun.rendezvous.refusals import NotInTime

LATE = 124
"""The exit code if not all instances arrive in time, as in timeout(1)."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="wait")
    wait = verbs.add_parser("wait", help="arrive at a barrier and wait until all instances arrive",
                            description="Come to a barrier, and wait until all instances have come. "
                            "A barrier opens once; give the next one another name.")  # fmt: skip
    wait.add_argument("name", metavar="NAME", help="the name of the barrier")
    wait.add_argument("--count", type=int, metavar="N",
                      help="how many instances must arrive (default: all of the job)")  # fmt: skip
    wait.add_argument("--timeout", default="10m", metavar="TIME",
                      help="how long to wait, such as 30s or 1h (default: 10m)")  # fmt: skip


def run(args: argparse.Namespace) -> int:
    """Wait; returns 0 if all instances arrive, else 124."""
    if not 0 < len(args.name) <= MAX_NAME:
        raise PairunError(Problem("PR801", f"NAME must have from 1 to {MAX_NAME} characters"))
    timeout_s = duration_s("--timeout", args.timeout)
    peers = peers_of(pai_dir(), "runtime")
    if peers is None:
        raise PairunError(
            Problem(
                "PR779",
                "the instances of this job do not know each other",
                hint="barriers need several instances and the job's key, which `pairun manifest`, "
                "`pairun submit` and `pairun run` make; see docs/gang.md",
            )
        )
    gang = peers.place.gang
    count = gang.total if args.count is None else args.count
    if not 0 < count <= gang.total:
        raise PairunError(
            Problem("PR801", f"--count must be from 1 to {gang.total}, the instances of this job")
        )
    try:
        peers.facts.arrive(args.name, peers.name, count, timeout_s)
    except NotInTime as e:
        from pairun.report.problems import print_problems

        print_problems(e.problems, args.vault)
        return LATE
    return 0
