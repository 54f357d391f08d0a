"""Whose log a file is: by its name, by its contents."""

from __future__ import annotations

import pytest

from pairun.incident.numbered import NumberedLog
from pairun.incident.writers import writer_of


@pytest.mark.parametrize(
    ("path", "text", "rank", "label"),
    [
        ("rank3.log", "", 3, "rank 3"),
        ("logs/train_rank_12.out", "", 12, "rank 12"),
        ("slurm-1734_5.out", "", 5, "rank 5"),
        ("id_x/attempt_0/3/stderr.log", "", 3, "rank 3"),
        ("id_x/attempt_0/3/stderr.log", "[rank11]: Traceback\n", 11, "rank 11"),
        ("1/rank.3/stdout", "", 3, "rank 3"),
        ("stderr.7", "", 7, "rank 7"),
        ("worker-3.log", "", 3, "worker-3"),
        ("train.log", "RANK=6\n", 6, "rank 6"),
        ("slurm-1734.out", "", None, "slurm-1734"),
        ("torchrun.log", "", None, "torchrun"),
        ("1/rank.03/stdout", "", 3, "rank 3"),
        ("rank-3/stdout", "", 3, "rank 3"),
        ("id_x/attempt_1/0/stdout.log", "", 0, "rank 0"),
        (
            "session_x/logs/worker-0a1b2c3d4e5f60718293a4b5c6d7-01000000-4711.err",
            "",
            None,
            "pid 4711",
        ),
        ("session_x/logs/raylet.out", "", None, "raylet"),
    ],
)
def test_the_rank_of_a_file(path: str, text: str, rank: int | None, label: str) -> None:
    """Names of launchers and schedulers, and what a log says of itself."""
    writer = writer_of(path, NumberedLog(text.encode(), path, []))
    assert (writer.rank, writer.label) == (rank, label)


@pytest.mark.parametrize(
    ("path", "text", "rank"),
    [("train_3.log", "", 3), ("worker3/stderr.log", "", 3), ("train_3.log", "RANK=11\n", 11)],
)
def test_the_rank_by_comparison_with_other_names(path: str, text: str, rank: int) -> None:
    """It counts unless the log itself names another rank."""
    writer = writer_of(path, NumberedLog(text.encode(), path, []), 3)
    assert (writer.rank, writer.launcher) == (rank, False)
