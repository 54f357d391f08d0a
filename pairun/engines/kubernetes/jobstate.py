"""The state of a job in a cluster, computed from its objects and its Pods."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import attrs

from pairun.base.escapes import visible
from pairun.diagnose.instances import InstanceFailure, first_of, what_followed
from pairun.engines.completionpolicy import Ended, RolePolicy, decide
from pairun.engines.kubernetes.jobobjects import JobObjects
from pairun.kube.frameworkpods import completion_of, decisive_instance
from pairun.kube.podstates import ENDED, PodState
from pairun.kube.workloads import POD

NAMED = 3
"""How many instances to name; more are counted."""

NOT_BEGUN = frozenset({"pending", "unschedulable", "starting", "stuck"})
"""The phases in which an instance's containers do not run."""


@attrs.frozen(kw_only=True)
class JobState:
    """The state of a job at one moment.

    Attributes:
        name: the job's name.
        namespace: the job's namespace.
        engine: the engine that starts its Pods.
        state: ``waiting``, ``running``, ``stopping``, ``succeeded`` or ``failed``.
        because: why it ended, or what the engine reports; may be empty.
        total: how many instances the job has.
        instances: the instances that have or had a Pod.
        exit_code: 0, or the exit code of its first failure; None while it runs.
        refused: whether the cluster refuses to create its Pods.
    """

    name: str
    namespace: str
    engine: str
    state: str
    because: str
    total: int
    instances: tuple[PodState, ...]
    exit_code: int | None = None
    refused: bool = False

    @property
    def ended(self) -> bool:
        """Whether the job has ended."""
        return self.state in ENDED


def state_of(job: JobObjects, namespace: str, instances: Sequence[PodState]) -> JobState:
    """Compute the state of a job from its objects and its Pods."""
    if job.workload is None:
        state, because, total = _decided(job.policies, instances)
    else:
        state, because, total = job.kind.state(job.workload)
        if state == "waiting" and (words := _untouched(job, job.workload, time.time())):
            because = words
    first = first_failure(job, instances)
    if state == "failed" and first is not None and first.reason:
        because = _with_reason(job, first, because)
        followed = what_followed([_failure(i) for i in instances if i.phase == "failed"])
        because = "; ".join(filter(None, (because, followed)))
    if state == "waiting" and any(i.phase not in NOT_BEGUN for i in instances):
        state = "running"
    code = 0 if state == "succeeded" else None
    if state == "failed":
        code = _failure_code(job, first)
    return JobState(
        name=job.name,
        namespace=namespace,
        engine=job.kind.engine,
        state=state,
        because=visible(" ".join(because.split())),
        total=max(total, len(instances)),
        instances=tuple(instances),
        exit_code=code,
    )


CONTROLLER_S = 15.0
"""A running controller writes a status within this many seconds."""


def _untouched(job: JobObjects, workload: Mapping[str, Any], now: float) -> str:
    """A note that no controller has acted on a workload; empty if one has, or still may.

    Args:
        now: seconds since the epoch.
    """
    made = str((workload.get("metadata") or {}).get("creationTimestamp") or "")
    with contextlib.suppress(ValueError):
        age_s = now - datetime.fromisoformat(made).timestamp()
        if age_s >= CONTROLLER_S and not workload.get("status"):
            return (
                f"no controller has acted on {job.kind.kind} {job.name} since {made}: "
                f"check that {job.kind.controller} runs"
            )
    return ""


def first_failure(job: JobObjects, instances: Iterable[PodState]) -> PodState | None:
    """The instance whose failure decided the job, else the first instance that failed."""
    if job.framework is not None and (decisive := decisive_instance(job.framework, instances)):
        return decisive
    failed = [i for i in instances if i.phase == "failed"]
    return failed[first_of([_failure(i) for i in failed])] if failed else None


def _failure(instance: PodState) -> InstanceFailure:
    """How an instance failed, by PID 1's diagnosis and the kubelet's clock."""
    at = None
    with contextlib.suppress(ValueError):
        at = datetime.fromisoformat(instance.ended).timestamp()
    return InstanceFailure(instance.label, str(instance.diagnosis.get("class") or ""), at)


def _with_reason(job: JobObjects, first: PodState, because: str) -> str:
    """Why a job failed: the first failure, then the engine's or the policy's reason."""
    reason = f"{first.label}: {first.reason}"
    if job.kind is POD:
        # The policy's reason names the instance, too.
        return reason if first.evicted or first.gone else because
    return reason if job.framework is not None else "; ".join(filter(None, (reason, because)))


def _failure_code(job: JobObjects, first: PodState | None) -> int:
    """The exit code of a failed job; 1 if no container's exit code decided."""
    if job.framework is not None:
        code = completion_of(job.framework).get("code")
        # FrameworkController's own codes are negative.
        return code if isinstance(code, int) and 0 < code < 256 else 1
    return (first.exit_code if first else None) or 1


def _decided(policies: Sequence[RolePolicy], instances: Sequence[PodState]) -> tuple[str, str, int]:
    """State, reason and number of instances of a job of plain Pods, which has no controller."""
    roles = sorted({i.role for i in instances})
    counts = {r: sum(i.role == r for i in instances) for r in roles}
    policies = policies or [RolePolicy(r, n, 1, n) for r, n in counts.items()]
    total = sum(p.instances for p in policies)
    ended = [
        Ended(i.role, i.label, i.exit_code or 0, "init" if i.init_code else "runtime")
        for i in sorted(instances, key=lambda i: i.ended or "~")
        if i.phase in ENDED
    ]
    if decision := decide(policies, ended, max(total, len(instances), 1)):
        return ("succeeded" if decision.succeeded else "failed"), decision.because, total
    return "waiting", _missing(policies, instances), total


def _missing(policies: Sequence[RolePolicy], instances: Sequence[PodState]) -> str:
    """A note on plain Pods that do not exist; empty if all exist."""
    labels = {i.label for i in instances}
    expected = [f"{p.role}-{n}" for p in policies for n in range(p.instances)]
    missing = [label for label in expected if label not in labels]
    return f"no Pod of {named(missing)}; nothing creates plain Pods again" if missing else ""


def changes(before: JobState | None, now: JobState) -> list[str]:
    """The changes since an earlier state, one line each, for people who follow a job.

    Instances with the same change share a line.
    """
    old = {i.label: (i.phase, i.reason) for i in before.instances} if before else {}
    groups: dict[tuple[str, str], list[str]] = {}
    for each in now.instances:
        point = (each.phase, each.reason)
        if old.get(each.label) != point:
            groups.setdefault(point, []).append(each.label)
    counts = Counter(i.phase for i in now.instances)
    lines = [_line(now, point, labels, counts[point[0]]) for point, labels in groups.items()]
    there = {i.label for i in now.instances}
    gone = [label for label in old if label not in there]
    if gone:
        lines.append(f"{named(gone)}: the Pod is gone")
    said = (before.state, before.because) if before else ("", "")
    if (now.state, now.because) != said and not now.ended and now.because:
        lines.append(f"the job is {now.state}: {now.because}")
    if not now.instances and before is None:
        lines.append("no Pod yet")
    return lines


def _line(now: JobState, point: tuple[str, str], labels: Sequence[str], number: int) -> str:
    phase, reason = point
    said = f"{phase}: {reason}" if reason else phase
    if now.total == 1:
        return f"{labels[0]}: {said}"
    return f"{named(labels)}: {said} ({number} of {now.total} {phase})"


def named(labels: Sequence[str]) -> str:
    """The names of a few instances; for more, some names and the number."""
    more = len(labels) - NAMED
    return ", ".join(labels[:NAMED]) + (f" and {more} more" if more > 0 else "")
