"""Parses the time of a log line, in the many formats that programs use."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import chain
from typing import NamedTuple

from pairun.diagnose.lines import Log

_NEAR_LINES, _CLOSE_LINES = 60, 3
_HEAD_CHARS = 160
_YEARLESS = 2000
_HALF_DAY_S = 43200
_MONTHS = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"

_FORMS = [
    re.compile(form.replace("CLOCK", r"(?P<clock>\d\d:\d\d:\d\d)(?:[.,:](?P<part>\d{1,9}))?"))
    for form in (
        r"(?P<year>\d{4})[-/.](?P<month>\d\d)[-/.](?P<day>\d\d)[T _-]CLOCK(?P<zone>Z| ?UTC|[+-]\d\d:?\d\d)?",
        r"(?:^|[\[ ])[EWIF](?P<month>\d\d?)(?P<day>\d\d) CLOCK",  # glog
        rf"(?P<month>{_MONTHS}) {{1,2}}(?P<day>\d\d?) CLOCK(?: (?P<year>\d{{4}}))?",  # syslog
        r"(?<![\d:])(?P<month>\d\d)-(?P<day>\d\d) CLOCK",
        r"^\W{0,3}(?:\[[^\]]{1,30}\]:?\W{0,3})?CLOCK\b",
    )
]
_OF_TRACEBACK = re.compile(
    r"\s|$|Traceback \(most|During handling of|The above exception was|(?:\w+\.)*\w*(?:Error|Exception)\b"
)
_PROGRESS = re.compile(r"(?i)\b(?:step|iter(?:ation)?|epoch|loss)\b\W{0,3}\d")


class Moment(NamedTuple):
    """A time in a log.

    Attributes:
        at: seconds since the epoch; without a zone those of UTC, without a year those of 2000, without a
            date those of 2000-01-01.
        form: ``zone``, ``date`` (no zone), ``day`` (no year) or ``clock`` (no date). Times of different
            forms cannot be compared.
    """

    at: float
    form: str

    def clock(self) -> str:
        """The time of day, as the log shows it."""
        return datetime.fromtimestamp(self.at, UTC).strftime("%H:%M:%S")

    def iso(self) -> str | None:
        """The time in ISO 8601; None if its date is unknown."""
        if self.form not in ("zone", "date"):
            return None
        text = datetime.fromtimestamp(self.at, UTC).isoformat(timespec="milliseconds")
        return text.replace("+00:00", "Z" if self.form == "zone" else "")


def seconds_between(earlier: Moment, later: Moment) -> float:
    """Seconds from one moment to another.

    Ignores the years if one of them has none, and the dates if one has none.
    """
    forms = {earlier.form, later.form}
    if "clock" in forms and len(forms) > 1:
        return (later.at - earlier.at + _HALF_DAY_S) % (2 * _HALF_DAY_S) - _HALF_DAY_S
    if "day" in forms and len(forms) > 1:
        return _yearless(later.at) - _yearless(earlier.at)
    return later.at - earlier.at


def _yearless(at: float) -> float:
    return datetime.fromtimestamp(at, UTC).replace(year=_YEARLESS).timestamp()


def moment_in(text: str) -> Moment | None:
    """The first time in a line, if it is near the line's beginning."""
    matches = (form.search(text[:_HEAD_CHARS]) for form in _FORMS)
    if (match := next(filter(None, matches), None)) is None:
        return None
    found = {name: value for name, value in match.groupdict().items() if value}
    month = found.get("month", "1")
    number = int(month) if month.isdigit() else _MONTHS.index(month) // 4 + 1
    zone = found.get("zone", "").strip()
    year, day = int(found.get("year", _YEARLESS)), int(found.get("day", 1))
    offset = zone if zone.startswith(("+", "-")) else "Z"
    try:
        at = datetime.fromisoformat(f"{year}-{number:02}-{day:02}T{found['clock']}{offset}")
        seconds = at.timestamp() + float(f"0.{found.get('part', 0)}")
    except (ValueError, OverflowError):
        return None
    known = ("zone" if zone else "date") if "year" in found else "day"
    return Moment(seconds, known if "month" in found else "clock")


def moment_of_failure(log: Log, at: int) -> Moment | None:
    """The time of the line that decides, or of a line close to it; None if there is none.

    The lines of a traceback do not count as a distance. The first line of a log tells when it
    began, unless it shows progress.

    Args:
        log: the log.
        at: an offset in the line.
    """
    distance = 0
    for n, line in enumerate(chain([log.line(at)], log.before(at, _NEAR_LINES - 1))):
        if moment := moment_in(line.shown):
            if n and line.at == 0 and not _PROGRESS.search(line.text):
                break
            return moment
        distance += n > 0 and not _OF_TRACEBACK.match(line.text)
        if distance >= _CLOSE_LINES:
            break
    moments = (moment_in(line.shown) for line in log.after(at, _CLOSE_LINES))
    return next(filter(None, moments), None)


def last_moment(log: Log) -> Moment | None:
    """The last time in a log, near its end."""
    return moment_of_failure(log, max(0, len(log.data.rstrip()) - 1))


SKEW_S = 2.0
"""The assumed clock difference of two hosts without common steps, in seconds."""


def first_delay(delays: Iterable[float]) -> float | None:
    """Seconds from a cause to the first of its consequences; negative if that came before.

    Clocks that differ a little can show a consequence before its cause: that is 0.

    Args:
        delays: from the cause to each consequence, in seconds.

    Returns:
        The shortest delay; None if there is none.
    """
    shortest = min(delays, default=None)
    return 0.0 if shortest is not None and -SKEW_S <= shortest < 0 else shortest


def later(after_s: float | None) -> str:
    """The clause for the end of a sentence, with a leading space; empty if the time is unknown.

    Args:
        after_s: in seconds; negative for what came earlier.
    """
    if after_s is None:
        return ""
    if after_s < 0:
        return f" {_span(-after_s)} earlier"
    return " within 1 s" if after_s < 1 else f" {_span(after_s)} later"


def _span(seconds: float) -> str:
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
