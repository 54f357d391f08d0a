"""``pairun logs``: the output of a job's instances in a cluster."""

from __future__ import annotations

import argparse
import sys

from pairun.cli.options import add_access, cluster_of
from pairun.cli.streams import say
from pairun.engines.kubernetes.clusterlogs import LogSelection, follow_logs, print_logs
from pairun.errors import PairunError, Problem
from pairun.kube.podstates import PodState
from pairun.volume.logjournal import is_journal_line


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("name", metavar="NAME", help="the job's name in the cluster")
    add_access(parser)
    parser.add_argument("--role", metavar="ROLE", help="this role only")
    parser.add_argument("--index", metavar="N", type=_number, help="this instance of the role only")
    parser.add_argument("--init", action="store_true",
                        help="the logs of the init phase instead of the command")  # fmt: skip
    parser.add_argument("--follow", "-f", action="store_true",
                        help="follow until the job has ended, including Pods that start later")  # fmt: skip
    parser.add_argument("--previous", "-p", action="store_true",
                        help="the logs of the container's previous run")  # fmt: skip
    parser.add_argument(
        "--tail", metavar="N", type=_number, help="the last N lines of each instance only"
    )


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise argparse.ArgumentTypeError(f"'{text}' is not a number")
    return int(text)


def run(args: argparse.Namespace) -> int:
    """Print the logs; returns 0 if every selected instance has one, else 1."""
    if args.follow and args.previous:
        raise PairunError(Problem("PR801", "the previous container has ended: omit --follow"))
    selection = LogSelection(
        role=args.role, index=args.index, init=args.init, previous=args.previous, tail=args.tail
    )
    cluster = cluster_of(args)
    # A single instance, selected by its number, needs no name before each line.
    alone = args.role is not None and args.index is not None

    def show(instance: PodState, line: str) -> None:
        if is_journal_line(line):
            return
        prefix = "" if alone else f"{instance.label} | "
        sys.stdout.write(f"{prefix}{line}\n")
        if args.follow:
            sys.stdout.flush()

    if args.follow:
        follow_logs(cluster, args.name, selection, show, say)
        return 0
    return 0 if print_logs(cluster, args.name, selection, show, say) else 1
