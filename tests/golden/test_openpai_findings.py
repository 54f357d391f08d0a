"""A review of the real job files has findings where they are right, and no false alarm."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pairun.review.lint import lint
from pairun.secrets.vault import Vault
from tests.conftest import SHARED

if TYPE_CHECKING:
    from pairun.errors import Problem

pytestmark = [pytest.mark.shared, pytest.mark.slow]

NEW = {"PR516", "PR903", "PR926", "PR927", "PR930", "PR931", "PR932", "PR935"}
EXPECTED = {
    ("contrib__debug-tools__examples__caffe2-resnet50-debug.yaml", "PR903", 35),  # $PYTHONPATH
}
"""Each was looked at, and is right."""


def test_every_job_of_the_corpus() -> None:
    """The user's commands parse, and use what is set."""
    folder = SHARED / "openpai" / "jobs"
    if not folder.exists():
        pytest.skip(f"{folder} is absent")
    files = sorted(map(str, folder.rglob("*.yaml")))
    problems = [p for p in lint(files, [], Vault()).problems if p.id in NEW]
    assert {_key(p) for p in problems} == EXPECTED


def _key(p: Problem) -> tuple[str, str, int]:
    assert p.place is not None
    return p.place.source.file.rpartition("/")[2], p.id, p.place.line
