"""``pairun submit JOB``: create a job in a Kubernetes cluster, and follow it."""

from __future__ import annotations

import argparse
import os

from pairun.cli.access import access_of, add_access
from pairun.cli.following import add_follow_arguments, follow_job, follow_limits, named_in_cluster
from pairun.cli.objectoptions import add_object_arguments, request_of
from pairun.cli.options import add_color
from pairun.cli.streams import say
from pairun.engines.kubernetes.kubeconfig import connect
from pairun.engines.kubernetes.submitting import submit
from pairun.engines.manifest.making import make
from pairun.errors import PairunError
from pairun.report.problems import print_problems


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_object_arguments(parser)
    add_access(parser, namespace=False)
    parser.add_argument("--wait", action="store_true",
                        help="follow the job until it has ended, and exit with its exit code")  # fmt: skip
    add_follow_arguments(parser)
    add_color(parser)


def run(args: argparse.Namespace) -> int:
    """Create the job; with ``--wait`` returns 0, or the exit code of the first failure."""
    limits = follow_limits(args, "--wait", given=args.wait)
    cluster = connect(access_of(args), args.vault)
    args.namespace = cluster.namespace
    args.kubernetes_version = args.kubernetes_version or cluster.version()
    made = make(request_of(args), dict(os.environ), args.vault)
    print_problems(made.problems, args.vault)
    if made.problems.errors or made.options is None:
        return 1
    name = made.options.name
    try:
        objects, warnings = submit(cluster, name, made.objects)
    except PairunError as e:
        print_problems(e.problems, args.vault)
        return 1
    print_problems(warnings, args.vault)
    kinds = sorted({o.kind for o in objects})
    say(f"created {len(objects)} objects ({', '.join(kinds)}) in namespace {cluster.namespace}")
    print(name, flush=True)
    if not args.wait:
        say(f"`pairun status {named_in_cluster(args, name)}` shows its state")
        return 0
    return follow_job(cluster, args, name, limits, made.options.engine)
