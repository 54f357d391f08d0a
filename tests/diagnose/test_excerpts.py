"""The labelled third-party logs: right, no false alarm, and nobody is told wrongly to stop."""

from __future__ import annotations

import pytest

from benchmarks.diagnose import Labelled, excerpts, is_wrong_stop, judged
from pairun.diagnose.classes import NONE
from pairun.diagnose.table import Table
from tests.conftest import SHARED

pytestmark = pytest.mark.shared


@pytest.fixture(scope="module")
def logs() -> list[Labelled]:
    """All of them."""
    return excerpts(SHARED)


def test_most_of_those_seen_are_right(logs: list[Labelled], table: Table) -> None:
    """Of the logs that rules were written with, at least 95 of 100 get their class."""
    results = judged([e for e in logs if not e.held_out], table)
    right = sum(found.klass == e.klass for e, found, _ in results)
    assert right >= 0.95 * len(results)


def test_no_healthy_log_raises_an_alarm(logs: list[Labelled], table: Table) -> None:
    """Every healthy log is called so."""
    results = judged([e for e in logs if e.klass == NONE], table)
    assert [found.klass for _, found, _ in results if found.klass != NONE] == []


def test_nobody_is_told_wrongly_to_stop(logs: list[Labelled], table: Table) -> None:
    """No log of a failure that a retry may mend forbids one."""
    assert not [found.rule for e, found, _ in judged(logs, table) if is_wrong_stop(e, found)]
