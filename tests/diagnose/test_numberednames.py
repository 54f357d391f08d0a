"""Which numbers in the names of a job's files are ranks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairun.diagnose.writers import ranks_by_name, rotated


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


def test_a_rotated_file_belongs_to_its_live_file() -> None:
    """Numbers from 0 may be ranks', and the system's logs are rotated while a job runs."""
    parts = {"a/train.log.1": "a/train.log", "a/train.log.2.gz": "a/train.log"}
    assert rotated(["a/train.log", *parts]) == parts
    others = ["b/train.log.1", "out", "out.0", "out.1", "kern.log", "kern.log.1", "a.log.2026"]
    assert rotated([*others, "a.log"]) == {}
