"""Earlier attempts of a job, found in its folder or in its log."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pairun.diagnose.gathering import Answer, answer, attempts_in
from pairun.diagnose.logfiles import LogFile, files_in
from pairun.diagnose.table import Table
from tests.diagnose.jobs import KEY_ERROR, write

FAILED = "2026-03-01 12:00:00,000 INFO step {step} loss 0.5\n" + KEY_ERROR.partition("\n")[2]


def answer_for(folder: Path, table: Table) -> Answer:
    """What the files below a folder say."""
    return answer(files_in([str(folder)]), table, 60)


def test_files_are_grouped_by_attempt() -> None:
    """The launcher's log belongs to the last attempt, the previous log comes first."""
    names = [
        "attempt_1/0/stderr.log",
        "attempt_0/0/stderr.log",
        "torchrun.log",
        "previous/main.log",
    ]
    groups = attempts_in([LogFile(n, n, n) for n in names])
    assert [[file.within for file in group] for group in groups] == [
        ["previous/main.log"],
        ["attempt_0/0/stderr.log"],
        ["attempt_1/0/stderr.log", "torchrun.log"],
    ]
    alone = [LogFile("previous/main.log", "previous/main.log", "previous/main.log")]
    assert (attempts_in(alone), attempts_in([])) == ([alone], [[]])


def test_the_same_failure_at_the_same_step_ends_the_retries(tmp_path: Path, table: Table) -> None:
    """Two attempts of torchrun stop at one step."""
    logs = {f"attempt_{n}/0/stderr.log": FAILED.format(step=400) for n in range(2)}
    result = answer_for(write(tmp_path, logs), table)
    assert result.advice is not None
    assert result.advice.made_progress is False
    assert result.incident is not None
    assert result.incident.diagnosis.retry == "after_fix"


def test_progress_that_the_code_tells_outranks_its_log(tmp_path: Path, table: Table) -> None:
    """Both logs end at step 400; the code says that the second attempt came further."""
    logs = {f"attempt_{n}/0/stderr.log": FAILED.format(step=400) for n in range(2)}
    for n in range(2):
        logs[f"attempt_{n}/progress.json"] = json.dumps({"schema": 1, "step": 100 * n})
    result = answer_for(write(tmp_path, logs), table)
    assert result.advice is not None
    assert result.advice.made_progress is True
    assert result.advice.retry == "retry"


def test_attempts_in_one_log_are_compared(tmp_path: Path, table: Table) -> None:
    """A scheduler appends the output of the second attempt to that of the first."""
    start = "SLURM_JOB_ID=77\n"
    text = start + FAILED.format(step=400) + start + FAILED.format(step=900)
    result = answer_for(write(tmp_path, {"slurm-77.out": text}), table)
    assert result.advice is not None
    assert (result.advice.attempts, result.advice.made_progress) == (2, True)


STEPS = "".join(f"2026-03-01 12:{n:02}:00,000 INFO step {n}/20 loss 0.5\n" for n in range(21))
OOM = "RuntimeError: CUDA out of memory. Tried to allocate 1 GiB\n"


@pytest.mark.parametrize(
    ("live", "klass"),
    [
        (STEPS + "2026-03-01 12:30:00,000 INFO training complete\n", "none"),
        (STEPS + KEY_ERROR, "user_code_error"),
        ("", "gpu_oom"),
    ],
)
def test_the_live_file_decides_before_a_rotated_one(
    tmp_path: Path, table: Table, live: str, klass: str
) -> None:
    """The older part counts only if the live file shows neither a cause nor an end."""
    logs = {"train.log.1": STEPS.replace(" 12:", " 11:") + OOM, "train.log": live}
    result = answer_for(write(tmp_path, logs), table)
    assert result.incident is not None
    assert result.incident.diagnosis.klass == klass
    is_named = any("an older part of train.log" in each for each in result.incident.unread)
    assert is_named == (klass != "gpu_oom")
