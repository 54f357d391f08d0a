"""Unwraps a program's lines from what Docker, CRI, log shippers or JSON lines put around them.

Sources for the shippers' keys: Fluent Bit's and Vector's Kubernetes filters, Filebeat's
``add_kubernetes_metadata``, LogEntry of Google Cloud, Loki's ``logcli --output jsonl``.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from pairun.base.foreignjson import parse_record
from pairun.diagnose.layouts import Column, prefixes_by_name, with_names
from pairun.diagnose.lines import Log

_HEAD_BYTES = 1 << 16
_MESSAGES = (
    "log", "message", "msg", "text", "event", "body", "textPayload", "line", "MESSAGE", "@message",
)  # fmt: skip
"""The fields in which loggers, shippers and exports keep the text of a record."""

_RAW = ("log", "textPayload", "line", "MESSAGE")
"""Fields with a line as the program printed it."""

_TIMES = (
    "time", "timestamp", "@timestamp", "Timestamp", "Time", "Date", "ts", "asctime", "__REALTIME_TIMESTAMP",
)  # fmt: skip
_LEVELS = ("level", "levelname", "severity", "lvl")
_TRACES = ("exc_info", "exception", "stack", "stack_trace", "traceback", "exc_text", "error")
_RANKS = ("rank", "global_rank", "process_index", "worker_id")
_MAX_JUDGED, _MAX_DEPTH = 500, 3
_EPOCH = re.compile(r"1\d{9}(?:\.\d+)?|1\d{12}|1\d{15}|1\d{18}")
_MAX_EPOCH_S = 1e10
_DOCKER = {"log", "stream", "time"}
_NAME = re.compile(r"[\w./-]{1,253}")

_SECTION = re.compile(
    rb"(?m)^(?:==> (?:[^\n]{0,200}/)?(?P<file>[^\n/]{1,200}?)(?:\.(?:log|txt|out|err|stdout|stderr))? <=="
    rb"|-{8,}\n(?P<host>[\w.-]{1,100})\n-{8,})$"
)

_Record = Mapping[str, Any]


def decoded(log: Log) -> Log:
    """A log as its program printed it; line numbers remain those of the file."""
    head = log.data[:_HEAD_BYTES].lstrip()
    if b"{" in head and _is_json_lines(head):
        return with_names(log.part(_from_json(log), is_rewritten=True))
    return with_names(_with_sections(log))


def _is_json_lines(head: bytes) -> bool:
    lines = [line for line in head.split(b"\n")[:20] if line.strip()]
    objects = [parsed for line in lines[:-1] or lines if (parsed := _object(line)) is not None]
    texts = sum(_text(each, _MESSAGES) != "" for each in objects)
    return bool(objects) and 2 * len(objects) >= len(lines) - 1 and 2 * texts >= len(objects)


def _object(line: bytes) -> _Record | None:
    """The record on a line, with the fields of the object inside in which a shipper puts a program's own."""
    if not line.startswith(b"{") or (parsed := parse_record(line)) is None:
        return None
    objects = (each for each in parsed.values() if isinstance(each, dict))
    inner: _Record = next((each for each in objects if _text(each, _MESSAGES)), {})
    return {**inner, **parsed} if _text(parsed, _MESSAGES) else {**parsed, **inner}


def _text(record: _Record, keys: Iterable[str]) -> str:
    """The first text under some keys; empty if there is none."""
    return next((str(record[key]) for key in keys if isinstance(record.get(key), str)), "")


def _from_json(log: Log) -> Iterator[tuple[int, bytes]]:
    prefix_of = _prefixes(log)
    open_at, open_text = 0, ""
    for number, raw in log.numbered():
        record = _object(raw)
        text = "" if record is None else _text(record, _MESSAGES)
        if record is None or not text:
            yield number, raw
        elif record.keys() == _DOCKER and not text.endswith("\n"):
            # Docker cuts lines at 16 KiB; a piece without a newline continues in the next record
            open_at, open_text = open_at or number, open_text + text
        else:
            at, text = open_at or number, open_text + text
            open_at, open_text = 0, ""
            for line in _shown(record, text, prefix_of(record)):
                yield at, line.encode("utf-8", "replace")
    if open_text:
        yield open_at, open_text.encode("utf-8", "replace")


def _prefixes(log: Log) -> Callable[[_Record], str]:
    """A function that returns what stands before a record's text; empty if it names no writer."""
    lines = log.data.split(b"\n")[:_MAX_JUDGED]
    records = [record for raw in lines if (record := _object(raw)) is not None]
    if any(map(_pod, records)):
        return lambda record: f"[pod/{pod}/main] " if (pod := _pod(record)) else ""
    values: dict[tuple[str, ...], dict[int, str]] = defaultdict(dict)
    for n, record in enumerate(records):
        for path, value in _fields(record, ()):
            values[path][n] = value
    paths = list(values)
    columns: dict[Column, dict[int, str]] = {(n, p[-1]): values[p] for n, p in enumerate(paths)}
    found = prefixes_by_name(columns, len(records))
    if found is None:
        return lambda _: ""
    (place, _), names = found
    return lambda each: names.get(dict(_fields(each, ())).get(paths[place], ""), b"").decode()


def _fields(record: _Record, above: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    """The short texts and numbers in a record, each with the keys that lead to it."""
    for key, value in record.items():
        if isinstance(value, int) and not isinstance(value, bool):
            yield (*above, key), str(value)
        elif isinstance(value, str) and _NAME.fullmatch(value):
            for n, part in enumerate(value.split("/")):
                yield (*above, key, str(n)) if "/" in value else (*above, key), part
        elif isinstance(value, dict) and len(above) < _MAX_DEPTH:
            yield from _fields(value, (*above, key))


def _shown(record: _Record, text: str, prefix: str) -> Iterator[str]:
    """A record as a logger prints it: time, level, message, then the traceback."""
    level = _text(record, _LEVELS).upper()
    if any(record.get(key) == text for key in _RAW):
        level = ""  # that of the stream; the line shows the program's own
    rank = next((f"[rank{record[k]}]: " for k in _RANKS if isinstance(record.get(k), int)), "")
    prefix += "" if "rank" in prefix else rank
    traces = [str(record[k]) for k in _TRACES if isinstance(record.get(k), str)]
    first, *others = [line for part in (text.rstrip("\n"), *traces) for line in part.split("\n")]
    yield prefix + " ".join(filter(None, (_clock(record), level, first)))
    yield from (prefix + line for line in others)


def _pod(record: _Record) -> str:
    """The Pod that wrote a shipped record; empty if unknown."""
    keys = (("pod_name",), ("pod",), ("pod", "name"))
    return next((v for p, v in _fields(record, ()) if p[-1:] in keys or p[-2:] in keys), "")


def _clock(record: _Record) -> str:
    """The time of a record with its date, also for a number since 1970 in s, ms, us or ns; else nothing."""
    times = (str(record[k]) for k in _TIMES if isinstance(record.get(k), str | int | float))
    time = next(times, "")
    if re.match(r"\d{4}-", time):
        return time
    if not _EPOCH.fullmatch(time):
        return ""
    seconds = float(time)
    while seconds > _MAX_EPOCH_S:
        seconds /= 1000
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


def _with_sections(log: Log) -> Log:
    """A log whose lines name the section in which they are; itself if it has no sections.

    ``tail`` and ``head`` print ``==> FILE <==``; dshbak and ``clush -b`` print the host between two rules.
    """
    headers = list(_SECTION.finditer(log.data))
    names = [re.sub(rb"[^\w.-]", b"-", each["host"] or each["file"]) for each in headers]
    shapes = Counter(re.sub(rb"\d+", b"#", name) for name in set(names))
    if len(shapes) != 1 or shapes.total() < 2:
        return log
    shown = [log.data[: headers[0].start()]]
    ends = [match.start() for match in headers[1:]] + [len(log.data)]
    for match, name, end in zip(headers, names, ends, strict=True):
        lines = log.data[match.end() : end].split(b"\n")
        prefix = b"[pod/%s/main] " % name
        shown += [b"\n" * match[0].count(b"\n")]
        shown += [b"\n".join(prefix + line if line.strip() else line for line in lines)]
    return Log(b"".join(shown), log.name, log.numbers, is_rewritten=True)
