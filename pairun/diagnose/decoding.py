"""Unwraps a program's lines from what Docker, CRI, log shippers or JSON lines put around them.

Sources for the shippers' keys: Fluent Bit's and Vector's Kubernetes filters, Filebeat's
``add_kubernetes_metadata``, LogEntry of Google Cloud, Loki's ``logcli --output jsonl``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from pairun.base.foreignjson import parse_record
from pairun.diagnose.layouts import Column, Writers, with_names, writers_of
from pairun.diagnose.numbered import NumberedLog, Runs

_HEAD_BYTES = 1 << 16
_MESSAGES = (
    "log", "message", "msg", "text", "event", "body", "textPayload", "line", "MESSAGE", "@message",
)  # fmt: skip
"""The fields in which loggers, shippers and exports keep the text of a record."""

_CRI = re.compile(
    rb"(?m)^(\d{4}-\d\d-\d\dT\S+ (?:stdout|stderr)) P (.*)\n\d{4}-\d\d-\d\dT\S+ (?:stdout|stderr) ([FP]) "
)
_RAW = ("log", "textPayload", "line", "MESSAGE")
"""Fields with a line as the program printed it."""

_TIMES = (
    "time", "timestamp", "@timestamp", "Timestamp", "Time", "Date", "ts", "asctime", "__REALTIME_TIMESTAMP",
)  # fmt: skip
_LEVELS = ("level", "levelname", "severity", "lvl")
_TRACES = ("exc_info", "exception", "stack", "stack_trace", "traceback", "exc_text", "error")
_RANKS = ("rank", "global_rank", "process_index", "worker_id")
_INNER = ("jsonPayload", "_source")
"""Where Google Cloud's logging and Elasticsearch keep a program's own fields."""

_MAX_JUDGED = 500
_MAX_DEPTH = 3
_EPOCH = re.compile(r"1\d{9}(?:\.\d+)?|1\d{12}|1\d{15}|1\d{18}")
_MAX_EPOCH_S = 1e10
_DOCKER = {"log", "stream", "time"}
_NAME = re.compile(r"[\w./-]{1,253}")

_SECTION = re.compile(
    rb"(?m)^(?:==> (?P<file>[^\n]{1,200}) <==|-{8,}\n(?P<host>[\w.-]{1,100})\n-{8,})$"
)
_ENDING = re.compile(r"\.(?:log|txt|out|err|stdout|stderr)$")


def decoded(log: NumberedLog) -> NumberedLog:
    """A log as its program printed it; line numbers remain those of the file."""
    head = log.data[:_HEAD_BYTES].lstrip()
    if b"{" in head and _is_json_lines(head):
        return with_names(_from_json(log))
    if b" P " in head and _CRI.search(head):
        return _whole_lines(log)
    return with_names(with_sections(log))


def _is_json_lines(head: bytes) -> bool:
    lines = [line for line in head.split(b"\n")[:20] if line.strip()]
    objects = [parsed for line in lines[:-1] or lines if (parsed := _object(line)) is not None]
    texts = sum(_message(each) is not None for each in objects)
    return bool(objects) and 2 * len(objects) >= len(lines) - 1 and 2 * texts >= len(objects)


def _object(line: bytes) -> dict[str, Any] | None:
    if not line.startswith(b"{") or (parsed := parse_record(line)) is None:
        return None
    if _message(parsed) is not None:
        return {**_inner(parsed, _INNER), **parsed}
    return {**parsed, **_inner(parsed, parsed)}


def _inner(record: Mapping[str, Any], keys: Iterable[str]) -> Mapping[str, Any]:
    """The first object under some keys that has a text, as shippers put a program's own fields."""
    objects = (record[key] for key in keys if isinstance(record.get(key), dict))
    return next((each for each in objects if _message(each) is not None), {})


def _message(record: Mapping[str, Any]) -> str | None:
    return next((str(record[key]) for key in _MESSAGES if isinstance(record.get(key), str)), None)


def _from_json(log: NumberedLog) -> NumberedLog:
    lines: list[bytes] = []
    runs = Runs()
    number_of = _numbers(log)
    writer = _Writer.in_log(log)
    open_line = False
    for index, raw in enumerate(log.data.split(b"\n")):
        record = _object(raw)
        text = None if record is None else _message(record)
        if record is None or text is None:
            lines.append(raw)
            runs.add(number_of(index))
            continue
        if "log" in record and open_line:
            # Docker cuts lines at 16 KiB; a piece without a newline continues in the next record
            lines[-1] += text.rstrip("\n").encode("utf-8", "replace")
            open_line = not text.endswith("\n")
            continue
        open_line = record.keys() == _DOCKER and not text.endswith("\n")
        shown = _shown(record, text, writer).encode("utf-8", "replace").split(b"\n")
        lines += shown
        runs.repeat(number_of(index), len(shown))
    return NumberedLog(b"\n".join(lines), log.name, runs.runs, log)


class _Writer(NamedTuple):
    """The fields of records that name their writers; see `pairun.diagnose.layouts.writers_of`.

    Attributes:
        paths: of each field, the keys that lead to it.
        writers: which of the fields name the writers; None if none do.
    """

    paths: Sequence[tuple[str, ...]] = ()
    writers: Writers | None = None

    @classmethod
    def in_log(cls, log: NumberedLog) -> _Writer:
        """The fields of a log's records."""
        lines = log.data.split(b"\n")
        records = [r for raw in lines[:_MAX_JUDGED] if (r := _object(raw)) is not None]
        if any(_pod(record) for record in records):
            return cls()
        values: dict[tuple[str, ...], dict[int, str]] = {}
        for n, record in enumerate(records):
            for path, value in _texts(record, ()):
                values.setdefault(path, {})[n] = value
        paths = list(values)
        columns = {Column(n, path[-1]): values[path] for n, path in enumerate(paths)}
        return cls(paths, writers_of(columns, len(records)))

    def prefix(self, record: Mapping[str, Any]) -> str:
        """What stands before a record's text; empty if it names no writer."""
        if self.writers is None:
            return ""
        values = dict(_texts(record, ()))
        name = tuple(values.get(self.paths[c.place], "") for c in self.writers.columns)
        return self.writers.prefixes.get(name, b"").decode()


def _texts(
    record: Mapping[str, Any], above: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], str]]:
    """The short texts and numbers in a record, each with the keys that lead to it."""
    for key, value in record.items():
        if isinstance(value, int) and not isinstance(value, bool):
            yield (*above, key), str(value)
        elif isinstance(value, str) and _NAME.fullmatch(value):
            for n, part in enumerate(value.split("/")):
                yield (*above, key, str(n)) if "/" in value else (*above, key), part
        elif isinstance(value, dict) and len(above) < _MAX_DEPTH:
            yield from _texts(value, (*above, key))


def _shown(record: Mapping[str, Any], text: str, writer: _Writer) -> str:
    """Format a record as a logger prints it: time, level, message, then the traceback."""
    time = _time(record)
    level = next((str(record[k]) for k in _LEVELS if isinstance(record.get(k), str)), "")
    if any(record.get(key) == text for key in _RAW):
        level = ""  # that of the stream; the line shows the program's own
    rank = next((f"[rank{record[k]}]: " for k in _RANKS if isinstance(record.get(k), int)), "")
    if pod := _pod(record):
        rank = f"[pod/{pod}] {rank}"
    rank = writer.prefix(record) or rank
    traces = [str(record[k]) for k in _TRACES if isinstance(record.get(k), str)]
    if record.get("event") == text and "\n" not in text:
        text = " ".join([text, *_fields(record)])
    lines = [line for part in (text.rstrip("\n"), *traces) for line in part.split("\n")]
    first = " ".join(filter(None, (_clock(time), level.upper(), lines[0])))
    return "\n".join([rank + first, *(rank + line for line in lines[1:])])


def _time(record: Mapping[str, Any]) -> str:
    """The time of a record as it has it; empty if it has none."""
    return next(
        (str(record[k]) for k in _TIMES if isinstance(record.get(k), str | int | float)), ""
    )


def _fields(record: Mapping[str, Any]) -> Iterator[str]:
    """The values that structlog prints after the name of an event."""
    for key, value in record.items():
        if key not in ("event", *_TIMES, *_LEVELS, *_TRACES) and isinstance(
            value, str | int | float
        ):
            yield f"{key}={value}"


def _pod(record: Mapping[str, Any]) -> str:
    """The Pod and container that wrote a shipped record, joined by ``/``; empty if unknown."""
    for key in ("kubernetes", "resource", "labels"):
        labels = record.get(key)
        if isinstance(labels, dict) and isinstance(labels.get("labels"), dict):
            labels = {**labels["labels"], **labels}
        if not isinstance(labels, dict):
            continue
        names = []
        for part in ("pod", "container"):
            name = labels.get(f"{part}_name", labels.get(part))
            name = name.get("name") if isinstance(name, dict) else name
            names.append(name if isinstance(name, str) and _NAME.fullmatch(name) else "")
        if names[0]:
            return f"{names[0]}/{names[1] or 'main'}"
    return ""


def _clock(time: str) -> str:
    """A time with its date, also for a number since 1970 in s, ms, us or ns; else nothing."""
    if re.match(r"\d{4}-", time):
        return time
    if not _EPOCH.fullmatch(time):
        return ""
    seconds = float(time)
    while seconds > _MAX_EPOCH_S:
        seconds /= 1000
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


def _whole_lines(log: NumberedLog) -> NumberedLog:
    """Join the lines that CRI split (flag ``P``); a joined line keeps its first part's number."""
    lines: list[bytes] = []
    runs = Runs()
    number_of = _numbers(log)
    partial = False
    for index, raw in enumerate(log.data.split(b"\n")):
        words = raw.split(b" ", 3)
        is_cri = len(words) == 4 and words[1] in (b"stdout", b"stderr") and words[2] in (b"F", b"P")
        if partial and is_cri:
            lines[-1] += words[3]
        else:
            lines.append(raw)
            runs.add(number_of(index))
        partial = is_cri and words[2] == b"P"
    return NumberedLog(b"\n".join(lines), log.name, runs.runs)


def with_sections(log: NumberedLog) -> NumberedLog:
    """A log whose lines name the section in which they are; itself if it has no sections.

    ``tail`` and ``head`` print ``==> FILE <==``; dshbak and ``clush -b`` print the host between two rules.
    """
    if b"==> " not in log.data and b"--------\n" not in log.data:
        return log
    headers = [(match, _section_name(match)) for match in _SECTION.finditer(log.data)]
    shapes = Counter(re.sub(r"\d+", "#", name) for name in {name for _, name in headers})
    if len(shapes) != 1 or shapes.total() < 2:
        return log
    shown = [log.data[: headers[0][0].start()]]
    ends = [match.start() for match, _ in headers[1:]] + [len(log.data)]
    for (match, name), end in zip(headers, ends, strict=True):
        prefix = b"[pod/%s/main] " % name.encode()
        blank = b"\n" * match[0].count(b"\n")
        text = log.data[match.end() : end]
        lines = [prefix + line if line.strip() else line for line in text.split(b"\n")]
        shown.append(blank + b"\n".join(lines))
    return NumberedLog(b"".join(shown), log.name, log.runs, log)


def _section_name(match: re.Match[bytes]) -> str:
    """The name of a section's writer: of its host, or of its file without folder and ending."""
    name = (match["host"] or match["file"].rpartition(b"/")[2]).decode("ascii", "replace")
    return re.sub(r"[^\w.-]", "-", _ENDING.sub("", name))


def _numbers(log: NumberedLog) -> Callable[[int], int]:
    """A function from a line's index to its number in the file; call it in ascending order."""
    runs = [*log.runs, (1 << 62, 0)]
    at = 0

    def number_of(index: int) -> int:
        nonlocal at
        while runs[at + 1][0] <= index:
            at += 1
        start, number = runs[at]
        return number + index - start

    return number_of
