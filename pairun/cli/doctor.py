"""``pairun doctor``: check whether a cluster is ready for jobs; changes nothing."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Iterator
from types import FrameType

from pairun.base.escapes import visible
from pairun.cli.options import add_access, cluster_of, duration_s, print_json
from pairun.engines.doctor.examining import Examination, examine
from pairun.engines.doctor.finding import DoctorFinding
from pairun.engines.manifest.choices import SERVICE_ACCOUNT
from pairun.report.tint import Tint

_SCHEMA = 1
_COLORS = {"ok": "green", "warning": "yellow", "failure": "red"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_access(parser)
    parser.add_argument("--account", metavar="NAME", default=SERVICE_ACCOUNT,
                        help=f"the service account of init containers (default: {SERVICE_ACCOUNT})")  # fmt: skip
    parser.add_argument("--image", action="append", default=[], metavar="IMAGE",
                        help="an image that the nodes must be able to pull (default: PAIRUN_IMAGE)")  # fmt: skip
    parser.add_argument("--timeout", metavar="DURATION", default="1m",
                        help="time limit of the whole check (default: 1m)")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Check the cluster; returns 0, or 1 after a failure."""
    limit_s = duration_s("--timeout", args.timeout)
    cluster = cluster_of(args)
    default = os.environ.get("PAIRUN_IMAGE")
    what = Examination(
        account=args.account,
        in_pod=cluster.in_pod,
        images=args.image or ([default] if default else []),
        env=os.environ,
        now=time.time,
    )
    findings = []
    style = Tint(sys.stdout)
    for finding in _within(limit_s, examine(cluster, what)):
        findings.append(finding)
        if not args.json:
            print(args.vault.text(_line(finding, style)), flush=True)
    if args.json:
        listed = [args.vault.record(f._asdict()) for f in findings]
        print_json({"schema": _SCHEMA, "server": cluster.server,
                    "namespace": cluster.namespace, "findings": listed})  # fmt: skip
    return 1 if any(f.level == "failure" for f in findings) else 0


def _line(finding: DoctorFinding, style: Tint) -> str:
    level = style(finding.level.ljust(7), _COLORS[finding.level])
    do = f" · {finding.do}" if finding.do else ""
    return f"{level}  {visible(f'{finding.subject}: {finding.message}{do}')}".replace("\n", " ")


class _TimeIsUp(Exception):
    pass


def _within(limit_s: float, findings: Iterator[DoctorFinding]) -> Iterator[DoctorFinding]:
    """Yield the findings until the time limit, even if a server stalls."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise _TimeIsUp

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, max(limit_s, 0.001))
    try:
        yield from findings
    except _TimeIsUp:
        do = "a server answers slowly: check the network, or raise --timeout"
        yield DoctorFinding("time", "failure", f"not finished after {limit_s:g} s", do)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
