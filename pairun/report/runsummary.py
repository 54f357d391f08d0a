"""The facts of a run on this machine, for its recap."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from pairun.base.durations import format_duration
from pairun.handover.journal import read_journal
from pairun.report.live.activity import spaced


@attrs.frozen(kw_only=True)
class PhaseReport:
    """A phase that has ended: its exit code and how long it took."""

    code: int
    seconds: float

    def __str__(self) -> str:
        return f"exit {self.code} ({spaced(format_duration(self.seconds))})"


@attrs.frozen(kw_only=True)
class InstanceReport:
    """The summary's facts about an instance.

    Attributes:
        label: role and number.
        init: its init phase; None if that did not end.
        command: its runtime phase; None if that did not begin.
        stopped: why the engine sent it a signal to stop; empty if it did not.
        journal: the file of its journal.
    """

    label: str
    init: PhaseReport | None
    command: PhaseReport | None
    stopped: str
    journal: str

    def is_stopped(self) -> bool:
        """Whether the signal ended it; one that failed by itself at the same time has failed."""
        ends = (r for r in read_journal(self.journal) if r.get("type") == "phase_end")
        return bool(self.stopped) and all(r.get("outcome") != "failure" for r in ends)


@attrs.frozen(kw_only=True)
class RunReport:
    """The summary's facts about a run.

    Attributes:
        namespaces: whether each instance had its own namespaces.
        because: why they had none.
        images: the images that a cluster would use.
        instances: in the order of the job.
        succeeded: whether the job succeeded.
        exit_code: the exit code of the run.
        verdict: why the job succeeded or failed, in words.
        workdir: the folder of the logs and everything else.
    """

    namespaces: bool
    because: str
    images: Sequence[str]
    instances: Sequence[InstanceReport]
    succeeded: bool
    exit_code: int
    verdict: str
    workdir: str
