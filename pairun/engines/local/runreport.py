"""The outcome of a run, for its summary."""

from __future__ import annotations

from pairun.engines.local.activities import journal_of
from pairun.engines.local.instance import LocalInstance, PhaseRun
from pairun.engines.local.jobrun import RunOutcome, stopper
from pairun.errors import PairunError
from pairun.job.model import Job
from pairun.report.journal.finding import JournalFile, read_instance
from pairun.report.journal.history import InstancePast
from pairun.report.recap import InstanceReport, PhaseReport, RunReport
from pairun.volume.door import Door


def run_report(job: Job, outcome: RunOutcome) -> RunReport:
    """Build the summary of a run."""
    return RunReport(
        namespaces=outcome.isolation.namespaces,
        because=outcome.isolation.because,
        images=[uri.value for r in job.roles if (uri := r.image.node.get("uri"))],
        instances=[
            InstanceReport(
                past=_past(i),
                init=_phase(i.ended.get("init")),
                command=_phase(i.ended.get("runtime")),
                stopped=_why_stopped(outcome) if i.stopped else "",
            )
            for i in outcome.instances
        ],
        succeeded=outcome.exit_code == 0,
        exit_code=outcome.exit_code,
        verdict=_verdict(outcome),
        workdir=outcome.workdir,
    )


def _past(instance: LocalInstance) -> InstancePast:
    journal, volume = journal_of(instance), Door(instance.volume)
    try:
        return read_instance(JournalFile(label=instance.label, journal=journal, folder=volume))
    except PairunError:
        return InstancePast(label=instance.label, journal=None)


def _why_stopped(outcome: RunOutcome) -> str:
    """Why the engine stopped the instances that still ran."""
    if outcome.decision is None:
        return stopper(outcome.stopped_by)
    return "the job was complete" if outcome.exit_code == 0 else outcome.decision.because


def _verdict(outcome: RunOutcome) -> str:
    """Why the run ended; for a stopped run, how many commands had started."""
    if outcome.decision is not None:
        return outcome.decision.because
    stopped = f"stopped by {stopper(outcome.stopped_by)}"
    total = len(outcome.instances)
    without = sum("runtime" not in i.ended for i in outcome.instances)
    if without == total:
        return f"{stopped} during init: no command was started"
    return f"{stopped}; {total - without} of {total} commands were started" if without else stopped


def _phase(ended: PhaseRun | None) -> PhaseReport | None:
    return None if ended is None else PhaseReport(code=ended.code, seconds=ended.seconds)
