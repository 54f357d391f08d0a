"""Parses the time of a log line, in the many formats that programs use."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta, timezone
from itertools import islice
from typing import NamedTuple

from pairun.diagnose.lines import Line, parse, plain

_NEAR_LINES = 60
_CLOSE_LINES = 3
_LINE_BYTES = 400

_ISO = re.compile(
    r"(?P<date>\d{4}[-/.]\d\d[-/.]\d\d)[T _-](?P<clock>\d\d:\d\d:\d\d)(?:[.,:](?P<part>\d{1,9}))?"
    r"(?P<zone>Z| ?UTC|[+-]\d\d:?\d\d)?"
)
_GLOG = re.compile(
    r"(?:^|[\[ ])[EWIF](?P<month>\d{1,2})(?P<day>\d\d) (?P<clock>\d\d:\d\d:\d\d)\.(?P<part>\d{3,9})"
)
_NAMED = re.compile(
    r"(?:[A-Z][a-z]{2} )?(?P<month>Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) "
    r"{1,2}(?P<day>\d{1,2}) (?P<clock>\d\d:\d\d:\d\d)(?:\.(?P<part>\d{1,9}))?(?: (?P<year>\d{4}))?"
)
_SHORT = re.compile(r"(?<![\d:])(?P<month>\d\d)-(?P<day>\d\d) (?P<clock>\d\d:\d\d:\d\d)")
_CLOCK = re.compile(
    r"^\W{0,3}(?:\[[^\]]{1,30}\]:?\W{0,3})?(?P<clock>\d\d:\d\d:\d\d)(?:[.,](?P<part>\d{1,9}))?\b"
)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_YEARLESS = 2000
_OF_TRACEBACK = re.compile(
    r"\s|$|Traceback \(most|During handling of|The above exception was|(?:\w+\.)*\w*(?:Error|Exception)\b"
)
_PROGRESS = re.compile(r"(?i)\b(?:step|iter(?:ation)?|epoch|loss)\b\W{0,3}\d")
_WANTS_TIME = re.compile(rb"\d\d:\d\d:\d\d")


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
        difference = (later.at - earlier.at) % 86400
        return difference if difference < 43200 else difference - 86400
    if "day" in forms and len(forms) > 1:
        return _without_year(later.at) - _without_year(earlier.at)
    return later.at - earlier.at


def moment_in(text: str) -> Moment | None:
    """The first time in a line, if it is near the line's beginning."""
    head = text[:160]
    try:
        if match := _ISO.search(head):
            return _iso(match)
        if match := _GLOG.search(head):
            return _day(int(match["month"]), int(match["day"]), match, _YEARLESS)
        if match := _NAMED.search(head):
            year = int(match["year"]) if match["year"] else _YEARLESS
            month = _MONTHS.index(match["month"]) + 1
            moment = _day(month, int(match["day"]), match, year)
            return moment._replace(form="date" if match["year"] else "day")
        if match := _SHORT.search(head):
            return _day(int(match["month"]), int(match["day"]), match, _YEARLESS)
        if match := _CLOCK.match(head):
            return _day(1, 1, match, _YEARLESS)._replace(form="clock")
    except (ValueError, OverflowError):
        return None
    return None


def moment_of_failure(data: bytes, at: int) -> Moment | None:
    """The time of the line that decides, or of a line close to it; None if there is none.

    The lines of a traceback do not count as a distance. The first line of a log tells when it
    began, unless it shows progress.

    Args:
        data: the log.
        at: an offset in the line.
    """
    distance = 0
    for n, start in enumerate(islice(_upwards(data, at), _NEAR_LINES)):
        text = _line_at(data, start).text
        if (moment := _moment_at(data, start)) is not None:
            if n and start == 0 and not _PROGRESS.search(text):
                break
            return moment
        distance += n > 0 and not _OF_TRACEBACK.match(text)
        if distance >= _CLOSE_LINES:
            break
    lines = islice(_below(data, at), _CLOSE_LINES)
    return next((moment for start in lines if (moment := _moment_at(data, start))), None)


def _upwards(data: bytes, at: int) -> Iterator[int]:
    """The starts of the line at an offset and of those above it."""
    start = data.rfind(b"\n", 0, at) + 1
    yield start
    while start > 0:
        start = data.rfind(b"\n", 0, start - 1) + 1
        yield start


def _below(data: bytes, at: int) -> Iterator[int]:
    """The starts of the lines below the one at an offset."""
    while at := data.find(b"\n", at) + 1:
        yield at


def last_moment(data: bytes) -> Moment | None:
    """The last time in a log, near its end."""
    return moment_of_failure(data, max(0, len(data.rstrip()) - 1))


def _without_year(at: float) -> float:
    moment = datetime.fromtimestamp(at, UTC)
    return moment.replace(year=_YEARLESS).timestamp()


def _line_at(data: bytes, start: int) -> Line:
    stop = data.find(b"\n", start)
    return parse(start, data[start : len(data) if stop < 0 else stop])


def _moment_at(data: bytes, start: int) -> Moment | None:
    stop = data.find(b"\n", start)
    stop = len(data) if stop < 0 else stop
    raw = data[start : min(stop, start + _LINE_BYTES)]
    # a progress bar uses carriage returns; the message follows its last state
    if b"\r" in raw:
        raw = raw.rstrip(b"\r").rpartition(b"\r")[2]
    return moment_in(plain(raw)) if _WANTS_TIME.search(raw) else None


def _iso(match: re.Match[str]) -> Moment:
    date = match["date"].replace("/", "-").replace(".", "-")
    moment = datetime.fromisoformat(f"{date}T{match['clock']}").replace(tzinfo=UTC)
    zone = (match["zone"] or "").strip()
    if zone.startswith(("+", "-")):
        hours, minutes = int(zone[1:3]), int(zone[-2:])
        offset = timedelta(hours=hours, minutes=minutes)
        moment = moment.replace(tzinfo=timezone(offset if zone[0] == "+" else -offset))
    return Moment(moment.timestamp() + _part(match["part"]), "zone" if zone else "date")


def _day(month: int, day: int, match: re.Match[str], year: int) -> Moment:
    clock = datetime.fromisoformat(f"{year:04}-{month:02}-{day:02}T{match['clock']}")
    part = match.groupdict().get("part")
    return Moment(clock.replace(tzinfo=UTC).timestamp() + _part(part), "day")


def _part(digits: str | None) -> float:
    return float(f"0.{digits}") if digits else 0.0


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
