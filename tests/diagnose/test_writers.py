"""Whose log a file is: by its name, by its contents."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairun.diagnose.lines import Log
from pairun.diagnose.writers import ranks_by_name, rotated, writer_of


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
        ("train.log", "start: rank=6 nprocs=8\n", 6, "rank 6"),
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
        ("stacks/alpha-40272.txt", "Process 40272: python t.py\n", None, "alpha-40272"),
        ("process_40272.log", "start pid=40272\n", None, "process_40272"),
    ],
)
def test_the_rank_of_a_file(path: str, text: str, rank: int | None, label: str) -> None:
    """Names of launchers and schedulers, and what a log says of itself."""
    writer = writer_of(path, Log(text.encode(), path))
    assert (writer.rank, writer.label) == (rank, label)


@pytest.mark.parametrize(
    "text",
    [
        "JobID          State ExitCode NodeList\n88 OUT_OF_MEMORY 0:125 n[1-4]\n",
        "$ sacct -j 88 -P\nJobID|JobName|State|ExitCode\n88|bert|FAILED|1:0\n",
        "  JOBID PARTITION NAME USER ST TIME NODES NODELIST(REASON)\n  88 gpu bert ann R 1:00 4 n[1-4]\n",
        "Job ID: 88\nCluster: c1\nState: FAILED (exit code 1)\n",
        "JobId=88 JobName=bert\n   UserId=ann(7) GroupId=ml(9)\n",
    ],
)
def test_what_a_scheduler_prints_of_a_job_is_no_rank(text: str) -> None:
    """Whatever the file's name is."""
    assert writer_of("job.txt", Log(text.encode(), "job.txt")).launcher


def test_a_ranks_log_may_mention_a_job_and_a_state() -> None:
    """Only a table's heading has both words."""
    text = "state restored\nstep 1 of job id 4\nstep 2\n"
    assert not writer_of("job.txt", Log(text.encode(), "job.txt")).launcher


def test_a_rotated_file_belongs_to_its_live_file() -> None:
    """Numbers from 0 may be ranks', and the system's logs are rotated while a job runs."""
    parts = {"a/train.log.1": "a/train.log", "a/train.log.2.gz": "a/train.log"}
    assert rotated(["a/train.log", *parts]) == parts
    others = ["b/train.log.1", "out", "out.0", "out.1", "kern.log", "kern.log.1", "a.log.2026"]
    assert rotated([*others, "a.log"]) == {}


@pytest.mark.parametrize(
    "form",
    [
        "train_{}.log", "train_{:02d}.log", "out.{}", "logs/worker{}/stderr.log", "gpu{}.txt", "stderr-{}",
        "node-a/{}.log", "out.1.{}", "2026-01-01/train-{}.log", "run_7/proc-{}.out", "{}.log", "trainer.{}.err",
    ],
)  # fmt: skip
def test_numbers_from_zero_are_ranks(form: str) -> None:
    """Files that differ only in a number that counts from 0, also with one file missing."""
    names = {form.format(rank): rank for rank in (0, 1, 2, 4, 5)}

    assert ranks_by_name([*names, "launcher.log"]) == names


@pytest.mark.parametrize(
    "names",
    [
        ["train_3.log"],
        ["train.log", "train.log.0", "train.log.1", "train.log.2"],
        ["train_1.log", "train_2.log"],
        ["attempt_0/train.log", "attempt_1/train.log"],
        ["lightning_logs/version_0/out.log", "lightning_logs/version_1/out.log"],
        ["job-2026.log", "job-2027.log"],
        ["epoch0.log", "epoch1.log", "epoch2.log"],
        ["node0.log", "node1.log"],
        ["a-0-0.log", "a-0-1.log", "a-1-0.log", "a-1-1.log"],
        ["out.0", "out.00", "out.1", "out.01"],
        ["train-0.log", "train-900.log"],
        ["log-20260101.txt", "log-20260102.txt"],
    ],
)  # fmt: skip
def test_other_numbers_are_no_ranks(names: list[str]) -> None:
    """One file, rotated files, attempts, dates, hosts, and two numbers that vary."""
    assert ranks_by_name(names) == {}


@given(
    st.lists(st.from_regex(r"[a-c]{0,2}[._-]?[0-9]{0,6}[._/-]?[0-9]{0,3}[a-b]?", fullmatch=True))
)
def test_a_rank_is_a_number_of_the_name(paths: list[str]) -> None:
    """Whatever the names are: a rank is a number of its file's name, and no two files share one."""
    ranks = ranks_by_name(paths)

    assert all(f"{rank}" in path for path, rank in ranks.items())
    assert set(ranks) <= set(paths)
