"""How a run ended: which instance failed first and why, and why a job succeeded although some failed."""

from __future__ import annotations

import os
from collections.abc import Sequence

import attrs

from pairun.base.folder import open_regular
from pairun.base.foreignjson import parse_record
from pairun.base.runfolders import OUTCOME
from pairun.diagnose.instances import InstanceFailure, first_of, what_followed
from pairun.report.journal.history import InstancePast
from pairun.volume.journal import Record

_MOST_BYTES = 1 << 16


@attrs.frozen(kw_only=True)
class FirstFailure:
    """The failure that caused the others.

    Attributes:
        label: the instance's name.
        cause: the reason, in one sentence.
        followed: how many others stopped because of it; empty if none did.
        advice: what to do; empty if unknown.
        diagnosis: the journal's diagnosis, if the failure was diagnosed.
    """

    label: str
    cause: str
    followed: str
    advice: str = ""
    diagnosis: Record | None = None

    @property
    def why(self) -> str:
        """The reason, and what followed."""
        return "; ".join(filter(None, (self.cause, self.followed)))


def first_failure(instances: Sequence[InstancePast]) -> FirstFailure | None:
    """Find the first failure: causes rank before their effects; then the earlier one is first.

    Args:
        instances: the instances of one job.

    Returns:
        None if nothing failed.
    """
    failed = [(i, p) for i in instances for p in i.phases if p.outcome == "failure"]
    if not failed:
        return None
    failures = [
        InstanceFailure(
            instance.label,
            str((phase.diagnosis or {}).get("class") or ""),
            instance.began + phase.began_s + phase.seconds,
        )
        for instance, phase in failed
    ]
    first = first_of(failures)
    phase = failed[first][1]
    task = next((t for t in phase.tasks if t.failed and not t.handler), None)
    cause, advice = phase.message or f"exit code {phase.exit_code}", ""
    if phase.diagnosis is not None:
        cause, advice = (str(phase.diagnosis.get(k) or "") for k in ("headline", "advice"))
    elif task is not None:
        cause = f"{task.id} failed: {task.message or ''}"
        advice = task.hint or ""
    return FirstFailure(
        label=failures[first].label, cause=cause, advice=advice, diagnosis=phase.diagnosis,
        followed=what_followed(failures),
    )  # fmt: skip


def stop_by_person(instances: Sequence[InstancePast]) -> str | None:
    """How a person stopped the job, in one sentence; None after a failure or without a stop."""
    phases = [phase for instance in instances for phase in instance.phases]
    if any(phase.outcome == "failure" for phase in phases):
        return None
    headlines = (
        str(phase.diagnosis.get("headline") or "")
        for phase in phases
        if phase.diagnosis is not None and phase.diagnosis.get("class") == "cancelled_by_user"
    )
    return next(headlines, None)


def success_despite_failures(instances: Sequence[InstancePast]) -> str:
    """Explain why a job succeeded although instances failed; empty in every other case.

    Args:
        instances: the instances of one run.
    """
    failed = sum(i.outcome == "failed" for i in instances)
    because = _why_it_succeeded(instances)
    if not (failed and because):
        return ""
    return f"the job succeeded by its completion policy, {although(failed)}: {because}"


def although(failed: int) -> str:
    """A note about instances that failed in a job that succeeded."""
    return f"although {failed} instance{'s' * (failed != 1)} failed"


def _why_it_succeeded(instances: Sequence[InstancePast]) -> str:
    outputs = [log for i in instances for log in i.logs if os.path.basename(log) == "output.log"]
    folders = {os.path.dirname(os.path.dirname(output)) for output in outputs}
    if len(folders) != 1:
        return ""
    try:
        with open(open_regular(os.path.join(folders.pop(), OUTCOME), os.O_RDONLY), "rb") as f:
            outcome = parse_record(f.read(_MOST_BYTES))
    except OSError:
        # an older run, or one that still runs
        return ""
    if outcome is None or outcome.get("succeeded") is not True:
        return ""
    because = outcome.get("because")
    return because if isinstance(because, str) else ""
