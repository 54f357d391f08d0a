"""The facts about a local run, for its recap."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from pairun.base.durations import format_duration
from pairun.report.live.activity import spaced
from pairun.volume.journal import read_journal


@attrs.frozen(kw_only=True)
class PhaseReport:
    """A phase that has ended: its exit code and how long it took."""

    code: int
    seconds: float

    def __str__(self) -> str:
        return f"exit {self.code} ({spaced(format_duration(self.seconds))})"


@attrs.frozen(kw_only=True)
class InstanceReport:
    """The recap's facts about an instance.

    Attributes:
        label: role and number.
        init: its init phase; None if that has not ended.
        command: its runtime phase; None if that never began.
        stopped: why the engine stopped it; empty if it did not.
        journal: the path of its journal.
    """

    label: str
    init: PhaseReport | None
    command: PhaseReport | None
    stopped: str
    journal: str

    def is_stopped(self) -> bool:
        """Whether the stop signal ended it; false if it failed on its own at the same time."""
        ends = (r for r in read_journal(self.journal) if r.get("type") == "phase_end")
        return bool(self.stopped) and all(r.get("outcome") != "failure" for r in ends)


@attrs.frozen(kw_only=True)
class RunReport:
    """The recap's facts about a run.

    Attributes:
        namespaces: whether each instance had its own namespaces.
        because: why they had none.
        images: the images that a cluster would use.
        instances: in the order of the job.
        succeeded: whether the job succeeded.
        exit_code: the exit code of the run.
        verdict: why the job succeeded or failed, as text.
        workdir: the folder with the logs and all other files.
    """

    namespaces: bool
    because: str
    images: Sequence[str]
    instances: Sequence[InstanceReport]
    succeeded: bool
    exit_code: int
    verdict: str
    workdir: str
