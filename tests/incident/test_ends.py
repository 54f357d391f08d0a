"""When a rank ended, on the clock of its log."""

from __future__ import annotations

import pytest

from pairun.incident.podfindings import on_log_clock, zone_lag
from pairun.incident.times import Moment, moment_in

EXACT = "2026-03-01T12:31:00Z"


def moment(text: str) -> Moment:
    """Read a time."""
    value = moment_in(text)
    assert value is not None
    return value


@pytest.mark.parametrize(
    ("lasts", "clock"),
    [
        (["2026-03-01 12:14:50", "2026-03-01 12:30:59"], "12:31:00"),  # both in UTC
        (["2026-03-01 20:14:50", "2026-03-01 20:30:58"], "20:31:00"),  # UTC+8
        (["2026-03-01 07:14:50", "2026-03-01 07:30:58"], "07:31:00"),  # UTC-5
        (["2026-03-01 12:14:50", "2026-03-01 12:56:00"], "12:31:00"),  # the other log goes on
        (["2026-03-01 12:14:50"], "12:31:00"),
        (["2026-03-01 12:40:00"], "12:40:00"),  # lines after the end: another run
        (["2026-03-01 20:14:50"], "20:14:50"),  # a silence, or another zone
    ],
)
def test_the_exact_end_is_put_on_the_clock_of_the_log(lasts: list[str], clock: str) -> None:
    """The last line of one rank that logs to its end shows the zone of all."""
    exact = moment(EXACT)
    ends = [(moment(each), exact) for each in lasts]
    assert on_log_clock(ends[0][0], exact, zone_lag(ends)).clock() == clock
