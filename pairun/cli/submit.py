"""``pairun submit JOB``: create a job in a Kubernetes cluster, and follow it."""

from __future__ import annotations

import argparse
import os
import time
from typing import NamedTuple

from pairun.base.durations import format_duration
from pairun.cli.access import access_of, add_access
from pairun.cli.objectoptions import add_object_arguments, request_of
from pairun.cli.options import duration_s
from pairun.cli.streams import say
from pairun.engines.kubernetes.cluster import Cluster
from pairun.engines.kubernetes.jobobjects import POD
from pairun.engines.kubernetes.jobstate import JobState, changes, named
from pairun.engines.kubernetes.kubeconfig import connect
from pairun.engines.kubernetes.podstates import ENDED
from pairun.engines.kubernetes.stuck import StuckClock
from pairun.engines.kubernetes.submitting import submit
from pairun.engines.kubernetes.watching import follow_for
from pairun.engines.manifest.making import make
from pairun.errors import PairunError, Problem
from pairun.report.problems import print_problems

STUCK_TIMEOUT = "10m"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_object_arguments(parser)
    add_access(parser, namespace=False)
    parser.add_argument("--wait", action="store_true",
                        help="follow the job until it has ended; the exit code is its own")  # fmt: skip
    parser.add_argument("--timeout", metavar="DURATION",
                        help="follow no longer than that; the job continues")  # fmt: skip
    parser.add_argument("--stuck-timeout", metavar="DURATION",
                        help="follow no longer when an instance is stuck for so long, as with an "
                        "image that does not exist (10m; 0s for no limit); the job continues")  # fmt: skip


def run(args: argparse.Namespace) -> int:
    """Create the job; with ``--wait`` return 0 on success, else the exit code of the first failure."""
    limits = _limits(args)
    cluster = connect(access_of(args))
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
    say(f"made {len(objects)} objects ({', '.join(kinds)}) in namespace {cluster.namespace}")
    print(name, flush=True)
    if not args.wait:
        say(f"`pairun status {_named(args, name)}` shows its state")
        return 0
    try:
        return _wait(cluster, args, name, limits)
    except KeyboardInterrupt:
        say(f"the job continues; {_again(args, name)}")
        return 130


class _Limits(NamedTuple):
    """How long to follow a job.

    Attributes:
        timeout_s: in all; None for no limit.
        stuck_s: while an instance is stuck; 0 for no limit.
    """

    timeout_s: float | None
    stuck_s: float


def _limits(args: argparse.Namespace) -> _Limits:
    for option, value in (("--timeout", args.timeout), ("--stuck-timeout", args.stuck_timeout)):
        if value is not None and not args.wait:
            hint = f"as in --wait {option} 2h"
            raise PairunError(Problem("PR801", f"{option} has no effect without --wait", hint=hint))
    return _Limits(
        None if args.timeout is None else duration_s("--timeout", args.timeout),
        duration_s("--stuck-timeout", args.stuck_timeout or STUCK_TIMEOUT),
    )


def _wait(cluster: Cluster, args: argparse.Namespace, name: str, limits: _Limits) -> int:
    """Show the job's progress until it has ended; returns its exit code."""
    last: JobState | None = None
    clock = StuckClock()
    try:
        for state in follow_for(cluster, name, limits.timeout_s):
            for line in changes(last, state):
                say(line)
            last = state
            stuck = clock.longest(state.instances, time.monotonic())
            if stuck and not state.ended and 0 < limits.stuck_s <= stuck.seconds:
                instance = stuck.instance
                for_s = f"{instance.label} is stuck for {format_duration(round(stuck.seconds))}"
                say(f"{for_s}: {instance.reason}; the job continues; {_again(args, name)}")
                return 1
    except PairunError:
        say(f"the job may continue; {_again(args, name)}")
        raise
    if last is None or not last.ended:
        still = f"{last.state}" if last else "unknown"
        say(f"after {args.timeout} the job is still {still}; {_again(args, name)}")
        return 1
    because = f": {last.because}" if last.because else ""
    say(f"the job has {last.state}{because} (exit code {last.exit_code})")
    left = [i.label for i in last.instances if i.phase not in ENDED]
    if left and last.engine == POD.engine:
        say(f"plain Pods are not stopped: {named(left)} may still run; {_again(args, name)}")
    return 1 if last.exit_code is None else last.exit_code


def _again(args: argparse.Namespace, name: str) -> str:
    named = _named(args, name)
    return f"`pairun status {named}` shows it, `pairun delete {named}` ends it"


def _named(args: argparse.Namespace, name: str) -> str:
    """The job's name, with the options for the same cluster and namespace."""
    words = [name]
    for option in ("kubeconfig", "context", "namespace"):
        if value := getattr(args, option):
            words += [f"--{option}", value]
    return " ".join(words)
