"""``pairun delete``: delete a job and its objects from a cluster."""

from __future__ import annotations

import argparse
from collections import Counter

from pairun.cli.options import add_access, cluster_of
from pairun.cli.streams import say
from pairun.engines.kubernetes.submitting import remove, wait_until_gone
from pairun.report.problems import print_problems

_LISTED = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("name", metavar="NAME", help="the job's name in the cluster")
    add_access(parser)
    parser.add_argument("--wait", action="store_true",
                        help="return when its Pods have ended; waits for their grace time at most")  # fmt: skip


def run(args: argparse.Namespace) -> int:
    """Delete the job; returns 0, or 1 if Pods still exist after their grace time."""
    cluster = cluster_of(args)
    removed = remove(cluster, args.name)
    print(f"deleted {_listed(removed.what)}", flush=True)
    print_problems(removed.kept, args.vault)
    if not args.wait or not removed.pods:
        return 0
    pods = "1 Pod" if removed.pods == 1 else f"{removed.pods} Pods"
    say(f"waiting for {pods} to end; the grace time is {removed.grace_s} s")
    if left := wait_until_gone(cluster, removed, say):
        say(f"{left} of the Pods still exist; a node that does not answer keeps them")
        return 1
    print("all Pods are deleted")
    return 0


def _listed(what: list[str]) -> str:
    if len(what) <= _LISTED:
        return ", ".join(what) or "nothing"
    kinds = Counter(each.partition(" ")[0] for each in what)
    return ", ".join(f"{n} {kind}{'s' if n > 1 else ''}" for kind, n in kinds.items())
