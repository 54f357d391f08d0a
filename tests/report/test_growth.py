"""The views of a run take work in proportion to its instances."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence

import attrs
import pytest

from pairun.report.journal.data import report_data
from pairun.report.journal.history import InstancePast
from pairun.report.journal.historybuilding import phases_of
from pairun.report.journal.records import read_entries
from pairun.report.journal.text import JournalText, print_blame
from pairun.report.page.runpage import run_page
from tests.calls import calls_of
from tests.report.page import stories

VIEWS: dict[str, Callable[[Sequence[InstancePast]], object]] = {
    "text": lambda instances: JournalText(io.StringIO()).run(instances),
    "blame": lambda instances: print_blame(JournalText(io.StringIO()), instances),
    "json": lambda instances: report_data(instances, with_blame=True),
    "page": lambda instances: run_page(instances, "run", []),
}


def _instances(size: int) -> list[InstancePast]:
    """A gang of which all failed, each with a result of its own."""
    pasts = []
    for label, records in stories.gang(4).items():
        text = "".join(json.dumps({"schema": 1, **record}) + "\n" for record in records)
        phases = phases_of(read_entries(io.BytesIO(text.encode()), label).entries)
        pasts.append(InstancePast(label=label, journal=label, phases=phases))
    return [
        attrs.evolve(pasts[n % 4], label=f"worker-{n}", notes=[f"note {n}"]) for n in range(size)
    ]


@pytest.mark.parametrize("view", VIEWS)
def test_ten_times_as_many_instances_take_ten_times_the_work(view: str) -> None:
    VIEWS[view](_instances(2))
    some, many = _instances(200), _instances(2000)
    assert calls_of(lambda: VIEWS[view](many)) <= 11 * calls_of(lambda: VIEWS[view](some))
