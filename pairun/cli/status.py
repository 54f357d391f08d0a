"""``pairun status``: the state of a job in a cluster."""

from __future__ import annotations

import argparse
import json

import attrs

from pairun.cli.access import access_of, add_access
from pairun.engines.kubernetes.jobstate import JobState
from pairun.engines.kubernetes.kubeconfig import connect
from pairun.engines.kubernetes.podstates import PodState
from pairun.engines.kubernetes.watching import read_job

SCHEMA = 1
COLUMNS = ("INSTANCE", "POD", "NODE", "PHASE", "RESTARTS", "REASON")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("name", metavar="NAME", help="the job's name in the cluster")
    add_access(parser)
    parser.add_argument("--json", action="store_true", help="JSON on standard output")


def run(args: argparse.Namespace) -> int:
    """Print the job's state; returns 0 for any state, 1 if it is unknown."""
    state = read_job(connect(access_of(args)), args.name)
    if args.json:
        # ASCII alone: nothing in it is obeyed by a terminal
        print(json.dumps(_data(state), indent=2))
    else:
        print("\n".join(_text(state)))
    return 0


def _data(state: JobState) -> dict[str, object]:
    instances = []
    for each in state.instances:
        data = attrs.asdict(each)
        del data["grace_s"]
        data["diagnosis"] = each.diagnosis or None
        instances.append({**data, "exit_code": each.exit_code})
    return {"schema": SCHEMA, **attrs.asdict(state, recurse=False), "instances": instances}


def _text(state: JobState) -> list[str]:
    reasons = "; ".join(filter(None, (state.because, _held_up(state))))
    because = f": {reasons}" if reasons else ""
    lines = [
        f"{state.name} in {state.namespace} ({state.engine}) is {state.state}{because}",
        _pods(state),
    ]
    if not state.instances:
        return lines
    rows = [COLUMNS, *map(_row, state.instances)]
    # The reason is last and as long as it is.
    widths = [max(len(row[n]) for row in rows) for n in range(len(COLUMNS) - 1)]
    for row in rows:
        cells = [text.ljust(width) for text, width in zip(row, widths, strict=False)]
        lines.append("  ".join((*cells, row[-1])).rstrip())
    return lines


def _pods(state: JobState) -> str:
    """How many instances have a Pod, and what happened to the Pods of the others."""
    gone = sum(1 for i in state.instances if i.gone)
    line = f"{len(state.instances) - gone} of {state.total} instances have a Pod"
    return f"{line}; {gone} ended and their Pods are deleted" if gone else line


def _held_up(state: JobState) -> str:
    """Why a job waits: the reason of the first instance that has one, such as a missing image."""
    if state.state != "waiting":
        return ""
    held = (f"{i.label} is {i.phase}: {i.reason}" for i in state.instances if i.reason)
    return next(held, "")


def _row(i: PodState) -> tuple[str, ...]:
    return (i.label, i.pod, i.node or "-", i.phase, str(i.restarts), i.reason)
