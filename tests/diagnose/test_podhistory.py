"""What a Pod's log directory says of its earlier attempts."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from pairun.base.paths import JOURNAL
from pairun.diagnose.circumstances import Circumstances
from pairun.diagnose.classes import RETRIES
from pairun.diagnose.diagnosis import Diagnosis
from pairun.diagnose.lines import Log
from pairun.diagnose.podjournal import with_pod_history
from pairun.diagnose.table import Table
from pairun.diagnose.weighing import diagnose
from pairun.volume.door import Door
from pairun.volume.progressfile import NotedProgress, write_progress
from tests.diagnose.jobs import KEY_ERROR

TIMEOUT = "torch.distributed.DistNetworkError: The client socket has timed out after 60s while trying to connect\n"


class Pod:
    """The log directory of a Pod on a volume, and what its PID 1 does at the end of each attempt."""

    def __init__(self, root: Path, table: Table) -> None:
        self.door = Door(str(root))
        self.folder = root / "logs" / "pod"
        self.folder.mkdir(parents=True)
        self.log = ""
        self._table = table

    def fails(self, text: str) -> Diagnosis:
        """One attempt: its output, its diagnosis, and the journal's record of it."""
        self.log += text
        log = self.log.encode()
        own = diagnose([Log(text.encode())], self._table, Circumstances(exit_code=1), 5)
        diagnosis = with_pod_history(own, self.door, str(self.folder), log)
        self.records(json.dumps({"type": "diagnosis", **diagnosis.data()}))
        return diagnosis

    def records(self, line: str) -> None:
        """Append a line to the journal."""
        with (self.folder / JOURNAL).open("a") as journal:
            journal.write(line + "\n")

    def says(self, step: int) -> None:
        """The user's code calls `pairun progress --step`."""
        write_progress(self.door, str(self.folder), NotedProgress(step))


@pytest.fixture
def pod(tmp_path: Path, table: Table) -> Pod:
    """A Pod before its first attempt."""
    return Pod(tmp_path, table)


def test_a_first_attempt_keeps_its_advice_and_notes_the_step(pod: Pod) -> None:
    """There is nothing to compare it with; the next attempt will need the step."""
    diagnosis = pod.fails(KEY_ERROR)
    assert diagnosis.details["step"] == "120"
    assert diagnosis.retry == "after_fix"
    assert "(" not in diagnosis.advice


def test_the_same_failure_at_the_same_step_ends_the_retries(pod: Pod) -> None:
    """A class that a retry often mends, twice at one place."""
    first = pod.fails("step 120 loss 1\n" + TIMEOUT)
    second = pod.fails("step 90 loss 1\n" + "step 120 loss 1\n" + TIMEOUT)
    assert first.retry == "retry"
    assert second.retry == "after_fix"
    assert second.advice == (
        "look for what these attempts have in common "
        "(the same failure 2 times, without progress: step 120 after step 120)"
    )


def test_an_attempt_that_never_started_made_no_progress(pod: Pod) -> None:
    """Its log has no step, so that the last one known is an earlier attempt's."""
    pod.fails("step 120 loss 1\n" + TIMEOUT)
    assert pod.fails(TIMEOUT).retry == "after_fix"


def test_the_same_failure_further_on_is_retried_within_a_bound(pod: Pod) -> None:
    """Also where the class alone asks for a correction first."""
    pod.fails("step 120 loss 1\n" + KEY_ERROR.partition("\n")[2])
    diagnosis = pod.fails("step 480 loss 1\n" + KEY_ERROR.partition("\n")[2])
    assert diagnosis.retry == "retry"
    assert "step 480 after step 120; retry 3 times at most" in diagnosis.advice


def test_what_the_code_says_of_its_progress_counts_more_than_the_log(pod: Pod) -> None:
    """The log repeats a step of an inner loop; the code counts on."""
    pod.says(1000)
    pod.fails("step 5 loss 1\n" + TIMEOUT)
    pod.says(2000)
    assert "step 2000 after step 1000" in pod.fails("step 5 loss 1\n" + TIMEOUT).advice


def test_steps_of_the_code_and_of_the_log_are_not_compared(pod: Pod) -> None:
    """They may count different things, so no progress is known."""
    pod.fails("step 5000 loss 1\n" + TIMEOUT)
    pod.says(3)
    diagnosis = pod.fails("step 6000 loss 1\n" + TIMEOUT)
    assert diagnosis.retry == "retry"
    assert "no progress is known" in diagnosis.advice


def test_stops_from_outside_are_never_the_jobs(pod: Pod, tmp_path: Path) -> None:
    """Three preemptions before the first step: the job may run again."""
    table, log = pod._table, b"starting\n"
    facts = Circumstances(exit_code=143, stopped=True)
    for _ in range(4):
        own = diagnose([Log(log)], table, facts, 5)
        diagnosis = with_pod_history(own, pod.door, str(pod.folder), log)
        pod.records(json.dumps({"type": "diagnosis", **diagnosis.data()}))
    assert diagnosis.klass == "terminated_sigterm"
    assert diagnosis.retry == own.retry


def test_a_job_poisons_only_the_advice_on_itself(pod: Pod, tmp_path: Path) -> None:
    """Forged attempts change the advice on a retry, within its words; class and reason stay."""
    honest = pod.fails("step 120 loss 1\n" + TIMEOUT)
    forged = {"type": "diagnosis", **honest.data(), "reason": "ssh evil", "advice": "ssh evil"}
    steps: list[Any] = ["9" * 21, "-1", "nan", "1e308", "\x1b[2J", "0" * 5000, 7, None, [], {}]
    for step, retry in itertools.product(steps, ("retry", "never", "\x1b[2J", 3)):
        details = {"step": step, "epoch": step, "checkpoint": "/etc/passwd", "progress_from": step}
        pod.records(json.dumps({**forged, "retry": retry, "details": details, "steps": step}))
    diagnosis = pod.fails("step 121 loss 1\n" + TIMEOUT)
    assert diagnosis.klass == honest.klass
    assert diagnosis.retry in RETRIES
    assert "evil" not in json.dumps(diagnosis.data())
    assert "\x1b" not in diagnosis.advice
    assert len(diagnosis.advice) < 500


@pytest.mark.parametrize(
    "line",
    ['{"type": "diagnosis"', '{"type": "diagnosis", "details": 3, "class": [], "retry": {}}',
     '["diagnosis"]', '{"type": "diagnosis", "details": {"step": "9" }, "class": "nccl_timeout"}'],
)  # fmt: skip
def test_what_a_command_writes_to_the_journal_ends_no_diagnosis(pod: Pod, line: str) -> None:
    """It can write there; a record of another form is no attempt like this one."""
    pod.records(line)
    assert pod.fails("step 120 loss 1\n" + TIMEOUT).retry == "retry"
