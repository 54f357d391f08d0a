"""A size without a unit is in bytes, and nobody means 16 bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.desk import Desk

OPEN = "job_may: {}\npod: {job_may: '*'}\n"


@pytest.mark.parametrize(
    ("pod", "meant"),
    [
        ("shm: 16", "16Gi"),
        ("shm: '512'", "512Mi"),
        ("shm: 512m", "512Mi"),
        ("resources: {limits: {memory: 64}}", "64Gi"),
        ("roles: {worker: {shm: 16k}}", "16Gi"),
    ],
)
def test_a_size_below_one_mebibyte(desk: Desk, pod: str, meant: str) -> None:
    """The warning has the place, and what was probably meant."""
    root = desk.root({"playbooks/policy.yaml": OPEN})
    (problem,) = desk.valid(desk.job(f"pod:\n  {pod}\n"), root).problems
    assert (problem.id, problem.severity) == ("PR933", "warning")
    assert str(problem.hint).startswith(f"did you mean '{meant}'?")
    assert problem.place is not None
    assert pod.split(":", maxsplit=1)[0] in problem.place.source.line(problem.place.line)


@pytest.mark.parametrize("pod", ["shm: 16Gi", "shm: 17179869184", "shm: 0", "shm: 1Mi"])
def test_a_size_that_may_be_meant(desk: Desk, pod: str) -> None:
    """Bytes are a unit, too, and 0 sets no limit."""
    root = desk.root({"playbooks/policy.yaml": OPEN})
    assert list(desk.valid(desk.job(f"pod:\n  {pod}\n"), root).problems) == []
