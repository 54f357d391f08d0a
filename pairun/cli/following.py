"""Follows a job in a cluster until it has ended: `submit --wait` and `status --watch`."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import NamedTuple

from pairun.base.durations import format_duration
from pairun.base.escapes import visible
from pairun.cli.options import duration_s
from pairun.engines.kubernetes.cluster import Cluster
from pairun.engines.kubernetes.jobobjects import NoJob
from pairun.engines.kubernetes.jobstate import NOT_BEGUN, JobState, changes, named
from pairun.engines.kubernetes.watching import follow_for
from pairun.errors import PairunError, Problem
from pairun.kube.podstates import ENDED, PodState
from pairun.kube.workloads import POD
from pairun.report.live.view import Activity, Standing, View, open_view

STUCK_TIMEOUT = "10m"


def add_follow_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare ``--timeout`` and ``--stuck-timeout``."""
    parser.add_argument("--timeout", metavar="DURATION",
                        help="stop following after this time; the job continues")  # fmt: skip
    parser.add_argument("--stuck-timeout", metavar="DURATION",
                        help="stop following when an instance or the job is stuck for this long, such as on "
                        "an image that does not exist or a quota (default: 10m; 0s for no limit); the job continues")  # fmt: skip


class FollowLimits(NamedTuple):
    """How long to follow a job.

    Attributes:
        timeout_s: the limit for everything; None for no limit.
        stuck_s: the limit while an instance is stuck; 0 for no limit.
    """

    timeout_s: float | None
    stuck_s: float


def follow_limits(args: argparse.Namespace, option: str, *, given: bool) -> FollowLimits:
    """Read the limits in the arguments.

    Args:
        args: the arguments that `add_follow_arguments` declares.
        option: the option that follows the job: ``--wait`` or ``--watch``.
        given: whether that option is given.

    Raises:
        PairunError: a limit is not a duration, or has no effect without the option (PR801).
    """
    for name, value in (("--timeout", args.timeout), ("--stuck-timeout", args.stuck_timeout)):
        if value is not None and not given:
            message, hint = f"{name} has no effect without {option}", f"as in {option} {name} 2h"
            raise PairunError(Problem("PR801", message, hint=hint))
    return FollowLimits(
        None if args.timeout is None else duration_s("--timeout", args.timeout),
        duration_s("--stuck-timeout", args.stuck_timeout or STUCK_TIMEOUT),
    )


def follow_job(
    cluster: Cluster,
    args: argparse.Namespace,
    name: str,
    limits: FollowLimits,
    engine: str | None = None,
) -> int:
    """Show a job until it has ended.

    Args:
        args: the command's arguments: its vault and colours, and options for suggested commands.
        engine: its engine, if known.

    Returns:
        The job's exit code; 1 if the job still runs, 130 after Ctrl-C.

    Raises:
        PairunError: the job is gone, or the API server refuses or does not respond.
    """
    view = open_view(sys.stderr, (), args.vault, color=args.color)
    states = follow_for(cluster, name, engine, limits.timeout_s, view.interval_s)
    try:
        return _follow(view, states, args, name, limits)
    except NoJob:
        raise
    except PairunError:
        _note(view, f"the job may continue; {_again(args, name)}")
        raise
    except KeyboardInterrupt:
        _note(view, f"the job continues; {_again(args, name)}")
        return 130
    finally:
        view.close()


def _follow(
    view: View,
    states: Iterator[JobState | str | None],
    args: argparse.Namespace,
    name: str,
    limits: FollowLimits,
) -> int:
    last: JobState | None = None
    clock, began = StuckClock(), time.monotonic()
    for state in states:
        if isinstance(state, str):
            _note(view, state)
        elif state is not None:
            for line in changes(last, state):
                _note(view, line)
            last = state
            stuck = clock.longest(state, time.monotonic())
            if stuck and not state.ended and 0 < limits.stuck_s <= stuck.seconds:
                for_s = f"{stuck.what} is stuck for {format_duration(round(stuck.seconds))}"
                _note(view, f"{for_s}: {stuck.reason}; the job continues; {_again(args, name)}")
                return 1
        if last is not None:
            view.refresh(_standing(view, last, time.monotonic() - began))
    if last is None or not last.ended:
        still = f"{last.state}" if last else "unknown"
        _note(view, f"after {args.timeout} the job is still {still}; {_again(args, name)}")
        return 1
    for line in _recap(args, name, last):
        _note(view, line)
    return 1 if last.exit_code is None else last.exit_code


def _note(view: View, line: str) -> None:
    view.note(f"[pairun] {visible(line)}")


def _recap(args: argparse.Namespace, name: str, last: JobState) -> Iterator[str]:
    """How the job ended, and which instances failed and why; the first failure is the job's."""
    counts = ", ".join(
        f"{number} {phase}"
        for phase in ("succeeded", "failed", "stopped")
        if (number := sum(i.phase == phase for i in last.instances))
    )
    if last.total > 1 and counts:
        yield f"{last.total} instances: {counts}"
    because = f": {last.because}" if last.because else ""
    yield f"the job has {last.state}{because} (exit code {last.exit_code})"
    left = [i.label for i in last.instances if i.phase not in ENDED]
    if left and last.engine == POD.engine:
        yield f"plain Pods are not stopped: {named(left)} may still run; {_again(args, name)}"


def _standing(view: View, state: JobState, seconds: float) -> Standing:
    running = [i for i in state.instances if i.phase not in ENDED]
    return Standing(
        # Plain lines report each change; a reader sees the duration in the timestamps.
        running=[_activity(i) for i in running] if view.moves else (),
        succeeded=sum(i.phase == "succeeded" for i in state.instances),
        failed=sum(i.phase == "failed" for i in state.instances),
        seconds=seconds,
        total=state.total,
    )


def _activity(instance: PodState) -> Activity:
    """An instance in the foot: its phase, the reason or the node, and its Pod's age."""
    restarts = f"restart {instance.restarts}" if instance.restarts else ""
    return Activity(
        label=instance.label,
        phase=instance.phase,
        doing=visible(
            instance.reason or (f"on {instance.node}" if instance.node else "no node yet")
        ),
        detail=restarts,
        elapsed_s=_age(instance.made),
        troubled=instance.phase in NOT_BEGUN - {"pending", "starting"},
    )


def _age(made: str) -> float | None:
    """Seconds since an API server's time (RFC 3339); the server's clock may differ from ours."""
    try:
        return max(0.0, (datetime.now(UTC) - datetime.fromisoformat(made)).total_seconds())
    except (ValueError, TypeError):
        return None


def _again(args: argparse.Namespace, name: str) -> str:
    name = named_in_cluster(args, name)
    return f"`pairun status {name}` shows it, `pairun delete {name}` ends it"


def named_in_cluster(args: argparse.Namespace, name: str) -> str:
    """The job's name, with the options for the same cluster and namespace."""
    words = [name]
    for option in ("kubeconfig", "context", "namespace"):
        if value := getattr(args, option):
            words += [f"--{option}", value]
    return " ".join(words)


class Stuck(NamedTuple):
    """What is stuck for the longest time.

    Attributes:
        what: an instance, or the job.
        reason: why.
        seconds: how long it is stuck.
    """

    what: str
    reason: str
    seconds: float


class StuckClock:
    """Measures how long instances of a followed job are stuck, or the whole job without its Pods.

    The reason may change in between, such as from ``ErrImagePull`` to ``ImagePullBackOff``.
    """

    def __init__(self) -> None:
        self._since: dict[str, float] = {}

    def longest(self, state: JobState, now: float) -> Stuck | None:
        """What is stuck for the longest time; None if nothing is.

        Args:
            state: the job now.
            now: the monotonic clock, in seconds.
        """
        stuck = {i.uid: (i.label, i.reason) for i in state.instances if i.phase == "stuck"}
        if state.refused:
            stuck[""] = ("the job", state.because)
        self._since = {key: self._since.get(key, now) for key in stuck}
        if not stuck:
            return None
        longest = min(stuck, key=lambda key: self._since[key])
        return Stuck(*stuck[longest], now - self._since[longest])
