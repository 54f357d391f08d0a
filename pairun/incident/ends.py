"""Puts an exact time of a rank's end on the clock of its log, whose times may have no zone.

Kubernetes and the kernel know when a container or process ended, in UTC or on the node's clock. The last
line of a killed process may be much older, and may be in another zone: those differ by half hours.
"""

from __future__ import annotations

from collections.abc import Iterable

from pairun.incident.spans import SKEW_S
from pairun.incident.times import Moment, seconds_between

_HOUR_S, _HALF_HOUR_S, _DAY_S = 3600, 1800, 86400
_NEAR_S = 600


def zone_lag(ends: Iterable[tuple[Moment, Moment]]) -> float | None:
    """How far the clock of logs is behind that of exact times, in seconds.

    A rank that logs until its end shows it.

    Args:
        ends: for each log of a job, the time of its last line, and the exact time of the end.

    Returns:
        A multiple of half an hour; None if no log shows it.
    """
    lags = [seconds_between(last, exact) + SKEW_S for last, exact in ends]
    if any(0 <= lag < _HOUR_S for lag in lags):
        return 0.0
    shortest = min(lags, default=None)
    if shortest is None or abs(shortest) > _DAY_S or shortest % _HALF_HOUR_S > _NEAR_S:
        return None
    return shortest // _HALF_HOUR_S * _HALF_HOUR_S


def on_log_clock(last: Moment, exact: Moment, lag_s: float | None) -> Moment:
    """The time of an end on the clock of a log; the log's last line if the clocks do not compare.

    Args:
        last: of the log.
        exact: when its writer ended.
        lag_s: how far the log's clock is behind, in seconds; None if unknown.
    """
    if lag_s is None:
        return last
    return last._replace(at=last.at + max(0.0, seconds_between(last, exact) - lag_s))
