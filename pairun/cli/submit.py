"""``pairun submit JOB``: create a job in a Kubernetes cluster, and follow it."""

from __future__ import annotations

import argparse

from pairun.cli.following import add_follow_arguments, follow_job, follow_limits, named_in_cluster
from pairun.cli.objectoptions import add_object_arguments, make_objects_of
from pairun.cli.options import add_access, add_color, cluster_of
from pairun.cli.streams import say
from pairun.engines.kubernetes.submitting import submit
from pairun.errors import PairunError
from pairun.job.stored import load_input
from pairun.report.problems import print_problems


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("job", metavar="JOB", help="the job file; - for standard input")
    add_object_arguments(parser)
    add_access(parser, namespace=False)
    parser.add_argument("--wait", action="store_true",
                        help="follow the job until it has ended, and exit with its exit code")  # fmt: skip
    add_follow_arguments(parser)
    add_color(parser)


def run(args: argparse.Namespace) -> int:
    """Create the job; with ``--wait`` returns 0, or the exit code of the first failure."""
    limits = follow_limits(args, "--wait", given=args.wait)
    if args.job != "-":
        load_input(args.job)  # a missing job is a simpler mistake than a missing kubeconfig
    cluster = cluster_of(args)
    args.namespace = cluster.namespace
    args.kubernetes_version = args.kubernetes_version or cluster.version()
    options, objects, problems = make_objects_of(args)
    print_problems(problems, args.vault)
    if problems.errors:
        return 1
    name = options.name
    try:
        made, warnings = submit(cluster, name, objects)
    except PairunError as e:
        print_problems(e.problems, args.vault)
        return 1
    print_problems(warnings, args.vault)
    kinds = sorted({m.kind for m in made})
    say(f"created {len(made)} objects ({', '.join(kinds)}) in namespace {cluster.namespace}")
    print(name, flush=True)
    if not args.wait:
        say(f"`pairun status {named_in_cluster(args, name)}` shows its state")
        return 0
    return follow_job(cluster, args, name, limits, options.engine)
