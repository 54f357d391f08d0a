"""A value that js-yaml 3 and 4 read differently is named, with the reading that was used."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pairun.errors import render

if TYPE_CHECKING:
    from tests.desk import Desk

POLICY = "job_may: {}\njob_yaml: js-yaml 4\n"


@pytest.mark.parametrize(
    ("written", "by_3", "by_4", "said_by_3", "said_by_4"),
    [
        ("012", 10, 12, "012 was read as 10 (js-yaml 3); js-yaml 4 reads 12",
         "012 was read as 12 (js-yaml 4); js-yaml 3 reads 10"),
        ("1:30", 90, "1:30", "1:30 was read as 90 (js-yaml 3); js-yaml 4 reads the text 1:30",
         "1:30 was read as the text 1:30 (js-yaml 4); js-yaml 3 reads 90"),
        ("0o14", "0o14", 12, "0o14 was read as the text 0o14 (js-yaml 3); js-yaml 4 reads 12",
         "0o14 was read as 12 (js-yaml 4); js-yaml 3 reads the text 0o14"),
    ],
)  # fmt: skip
def test_the_reading_is_the_clusters_and_said(
    desk: Desk, written: str, by_3: object, by_4: object, said_by_3: str, said_by_4: str
) -> None:
    """Without a word of the policy it is js-yaml 3; the review says which one was used."""
    text = desk.job(more=f"parameters: {{x: {written}}}\n")
    root = desk.root({"playbooks/policy.yaml": POLICY})
    for roots, value, said in (((), by_3, said_by_3), ((root,), by_4, said_by_4)):
        review = desk.valid(text, *roots)
        assert review.job is not None
        assert review.job.parameters is not None
        assert review.job.parameters.plain() == {"x": value}
        (warning,) = [p for p in review.problems if p.id == "PR924"]
        assert warning.message == said
        assert warning.severity == "warning"


@pytest.mark.parametrize("written", ["yes", "12", "'012'", "1_000", "0x1F", "2020-01-02", "012 x"])
def test_what_both_read_alike_is_not_named(desk: Desk, written: str) -> None:
    """Nothing is said of a value that means the same to both."""
    review = desk.valid(desk.job(more=f"parameters: {{x: {written}}}\n"))
    assert not [p for p in review.problems if p.id == "PR924"]


def test_a_secret_is_not_shown(desk: Desk) -> None:
    """The warning for a secret names its line, and not what it is."""
    review = desk.valid(desk.job(more="secrets: {pin: 0123456}\n"))
    (warning,) = [p for p in review.problems if p.id == "PR924"]
    assert "0123456" not in render(warning)
    assert "js-yaml 3 was used" in warning.message
