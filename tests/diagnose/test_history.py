"""What earlier attempts say about a retry."""

from __future__ import annotations

import pytest

from pairun.diagnose.diagnosis import of_class
from pairun.diagnose.history import Attempt, retry_advice
from pairun.diagnose.progress import Progress, progress_in


def attempt(
    step: int | None, *, retry: str | None = "retry", how: str = "a", node: str = ""
) -> Attempt:
    """An attempt that came to a step."""
    diagnosis = of_class("nccl_timeout", 0.9)._replace(rule=how, retry=retry)
    return Attempt(diagnosis, Progress(step), node)


def test_one_attempt_changes_nothing() -> None:
    """The advice is that of the failure alone."""
    advice = retry_advice([attempt(5)])
    assert (advice.retry, advice.words) == ("retry", "")


def test_two_different_failures_change_nothing() -> None:
    """A retry met another failure, so it may help again."""
    assert retry_advice([attempt(5, how="a"), attempt(5, how="b")]).retry == "retry"


@pytest.mark.parametrize("retry", ["retry", "after_fix", None])
def test_the_same_failure_without_progress_ends_the_retries(retry: str | None) -> None:
    """Two equal failures at the same step, whatever the class says."""
    advice = retry_advice([attempt(400, retry=retry), attempt(400, retry=retry)])
    assert advice.retry == "after_fix"
    assert advice.words == "the same failure 2 times, without progress: step 400 after step 400"


@pytest.mark.parametrize("retry", ["retry", "after_fix"])
def test_the_same_failure_with_progress_is_retried_within_a_bound(retry: str) -> None:
    """Each attempt comes further, so the job will end."""
    advice = retry_advice([attempt(400, retry=retry), attempt(900, retry=retry)])
    assert advice.retry == "retry"
    assert advice.words.endswith("step 900 after step 400; retry 3 times at most")


def test_without_known_progress_a_retryable_failure_needs_three() -> None:
    """No word of progress is weaker than no progress."""
    assert retry_advice([attempt(None)] * 2).retry == "retry"
    assert retry_advice([attempt(None)] * 3).retry == "after_fix"


def test_a_failure_of_one_node_asks_for_another_one() -> None:
    """Both attempts ran on one node, and the class is a node's."""
    elsewhere = "retry_elsewhere"
    same = retry_advice([attempt(9, retry=elsewhere, node="node7")] * 2)
    assert (same.retry, same.words) == (
        elsewhere,
        "the same failure 2 times on node7; choose another node",
    )
    unknown = retry_advice([attempt(9, retry=elsewhere)] * 2)
    assert unknown.retry == elsewhere


def test_a_failure_on_every_node_is_the_jobs() -> None:
    """Two nodes fail alike at the same step."""
    nodes = [attempt(9, retry="retry_elsewhere", node=n) for n in ("node7", "node8")]
    advice = retry_advice(nodes)
    assert advice.retry == "after_fix"
    assert "2 different nodes" in advice.words


@pytest.mark.parametrize(
    ("log", "progress"),
    [
        (b"step 10 loss 1\nstep 20 loss 1\n", Progress(20)),
        (b"Epoch 3, global_step=1200, loss=0.1\n", Progress(1200, 3)),
        (b"{'loss': 1.2, 'epoch': 2.0}\n 33%|###   | 575/1725 [3:03<6:06, 19.1s/it]\n", Progress(575, 2)),
        (b"iteration 400/ 5000 | loss\n", Progress(400)),
        (b"the first footstep 4\n", Progress()),
    ],
)  # fmt: skip
def test_progress_is_read_from_a_log(log: bytes, progress: Progress) -> None:
    """Steps and epochs in the forms of trainers."""
    assert progress_in(log) == progress
