"""Unwraps a program's lines from what Docker, CRI, log shippers or JSON lines put around them.

Sources for the shippers' keys: Fluent Bit's and Vector's Kubernetes filters, Filebeat's
``add_kubernetes_metadata``, LogEntry of Google Cloud, Loki's ``logcli --output jsonl``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from pairun.incident.layouts import with_names
from pairun.incident.numbered import NumberedLog, Runs

_HEAD_BYTES = 1 << 16
_CRI = re.compile(
    rb"(?m)^(\d{4}-\d\d-\d\dT\S+ (?:stdout|stderr)) P (.*)\n\d{4}-\d\d-\d\dT\S+ (?:stdout|stderr) ([FP]) "
)
_MESSAGES = ("log", "message", "msg", "text", "event", "body", "textPayload", "line")
_TIMES = ("time", "timestamp", "@timestamp", "ts", "asctime")
_LEVELS = ("level", "levelname", "severity", "lvl")
_TRACES = ("exc_info", "exception", "stack", "stack_trace", "traceback", "exc_text", "error")
_RANKS = ("rank", "global_rank")
_DOCKER = {"log", "stream", "time"}
_NAME = re.compile(r"[\w.-]{1,253}")


def decoded(log: NumberedLog) -> NumberedLog:
    """A log as its program printed it; line numbers remain those of the file."""
    head = log.data[:_HEAD_BYTES].lstrip()
    if b"{" in head and _is_json_lines(head):
        return _from_json(log)
    if b" P " in head and _CRI.search(head):
        return _whole_lines(log)
    return with_names(log)


def _is_json_lines(head: bytes) -> bool:
    lines = [line for line in head.split(b"\n")[:20] if line.strip()]
    objects = [parsed for line in lines[:-1] or lines if (parsed := _object(line)) is not None]
    texts = sum(_message(each) is not None for each in objects)
    return bool(objects) and 2 * len(objects) >= len(lines) - 1 and 2 * texts >= len(objects)


def _object(line: bytes) -> dict[str, Any] | None:
    if not line.startswith(b"{"):
        return None
    try:
        parsed = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return parsed if isinstance(parsed, dict) else None


def _message(record: Mapping[str, Any]) -> str | None:
    for key in _MESSAGES:
        if isinstance(record.get(key), str):
            return str(record[key])
    return None


def _from_json(log: NumberedLog) -> NumberedLog:
    lines: list[bytes] = []
    runs = Runs()
    number_of = _numbers(log)
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
        shown = _shown(record, text).encode("utf-8", "replace").split(b"\n")
        lines += shown
        runs.repeat(number_of(index), len(shown))
    return NumberedLog(b"\n".join(lines), log.name, runs.runs)


def _shown(record: Mapping[str, Any], text: str) -> str:
    """Format a record as a logger prints it: time, level, message, then the traceback."""
    time = next(
        (str(record[k]) for k in _TIMES if isinstance(record.get(k), str | int | float)), ""
    )
    level = next((str(record[k]) for k in _LEVELS if isinstance(record.get(k), str)), "")
    rank = next((f"[rank{record[k]}]: " for k in _RANKS if isinstance(record.get(k), int)), "")
    if pod := _pod(record):
        rank = f"[pod/{pod}] {rank}"
    traces = [str(record[k]) for k in _TRACES if isinstance(record.get(k), str)]
    lines = [line for part in (text.rstrip("\n"), *traces) for line in part.split("\n")]
    first = " ".join(filter(None, (_clock(time), level.upper(), lines[0])))
    return "\n".join([rank + first, *(rank + line for line in lines[1:])])


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
    return time if re.match(r"\d{4}-", time) else ""


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
