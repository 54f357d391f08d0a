"""Brings records that are no JSON lines into that form: documents with arrays of objects, CSV, and logfmt."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pairun.base.foreignjson import parse_json, parse_json_at
from pairun.incident.numbered import NumberedLog, Runs

_SPREAD = re.compile(rb"\[\s*\{|\{\s*\n")
"""How objects begin that are an array, or have several lines."""

_LOGFMT = re.compile(rb"[a-zA-Z_][\w.]{0,40}=(?:\"|\S+ [a-zA-Z_][\w.]{0,40}=)")
_FIELD = re.compile(rb"(?:^|(?<= ))([a-zA-Z_][\w.]{0,40})=(\"(?:[^\"\\]|\\.)*\"|\S*)")
"""A line and a field in logfmt (https://brandur.org/logfmt)."""

MESSAGES = (
    "log",
    "message",
    "msg",
    "text",
    "event",
    "body",
    "textPayload",
    "line",
    "MESSAGE",
    "@message",
)
"""The fields in which loggers, shippers and exports keep the text of a record."""

_TABLE = re.compile(rb"\"?[@\w. -]{1,40}\"?(?:,\"?[@\w. -]{1,40}\"?){1,40}\r?\n")
"""The header of a table in CSV."""

_BETWEEN = re.compile(r"[\s,\[\]]*(?=\{)")


def one_each_line(log: NumberedLog) -> NumberedLog | None:
    """The records of a log as one JSON object each line; None if it is in no other form of records."""
    if is_table(log.data):
        return _from_table(log)
    if _LOGFMT.match(log.data):
        return _from_logfmt(log)
    is_document = log.data.startswith(b"{") and log.data.rstrip().count(b"\n") == 0
    return _from_objects(log) if is_document or _SPREAD.match(log.data) else None


def is_table(head: bytes) -> bool:
    """Whether a file begins as a table in CSV with a column of log messages."""
    match = _TABLE.match(head)
    names = match[0].replace(b'"', b"").strip().split(b",") if match else []
    return any(name.decode().strip() in MESSAGES for name in names)


def _from_table(log: NumberedLog) -> NumberedLog:
    """The rows of a table in CSV as objects; a quoted message may have several lines."""
    import csv  # imported here: most logs are no tables

    rows = csv.reader(log.data.decode("utf-8", "replace").splitlines(keepends=True))
    names = [name.strip() for name in next(rows)]
    number_of = numbers(log)
    lines: list[bytes] = []
    runs = Runs()
    before = rows.line_num
    try:
        for row in rows:
            lines.append(json.dumps(dict(zip(names, row, strict=False))).encode())
            runs.repeat(number_of(before), 1)
            before = rows.line_num
    except csv.Error:
        pass  # the end of the file is cut off, or a line is too long
    return NumberedLog(b"\n".join(lines), log.name, runs.runs, log)


def _leaves(value: Mapping[str, Any], above: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The records in a document, each with the fields of what contains it, such as a stream's labels."""
    own = {**above, **{key: each for key, each in value.items() if not isinstance(each, list)}}
    if any(isinstance(value.get(key), str) for key in MESSAGES):
        yield {**above, **value}
        return
    for each in value.values():
        for item in each if isinstance(each, list) else ():
            if isinstance(item, dict):
                yield from _leaves(item, own)
            elif isinstance(item, list) and len(item) > 1 and isinstance(item[1], str):
                yield {**own, "time": str(item[0]), "line": item[1]}  # Loki
    for each in value.values():
        if isinstance(each, dict):
            yield from _leaves(each, above)


def _from_objects(log: NumberedLog) -> NumberedLog | None:
    """The objects of a JSON array, or that follow each other, as one line each; None without any."""
    text = log.data.decode("utf-8", "replace")
    number_of = numbers(log)
    lines: list[bytes] = []
    runs = Runs()
    at, index = 0, 0
    while match := _BETWEEN.match(text, at):
        index += text.count("\n", at, match.end())
        at = match.end()
        try:
            record, end = parse_json_at(text, at)
        except ValueError:
            # a part is missing: go on with the next object that is indented as this one
            indent = text[text.rfind("\n", 0, at) + 1 : at]
            end = text.find(f"\n{indent}{{", at)
            if end < 0:
                break
            index += text.count("\n", at, end)
            at = end
            continue
        records = list(_leaves(record, {})) if isinstance(record, dict) else []
        # a nested record may have several lines: only one alone has a known place
        if len(records) < 2:
            records = [record]
        lines += [json.dumps(each).encode() for each in records]
        for _ in records:
            runs.repeat(number_of(index), 1)
        index += text.count("\n", at, end)
        at = end
    return NumberedLog(b"\n".join(lines), log.name, runs.runs) if len(lines) > 1 else None


def _from_logfmt(log: NumberedLog) -> NumberedLog | None:
    """The lines of logfmt (``ts=... pod=worker-1 msg="..."``) as objects; None if most have no text."""
    lines = log.data.split(b"\n")
    shown = []
    for line in lines:
        fields = {m[1].decode(): _unquoted(m[2]) for m in _FIELD.finditer(line)}
        is_record = _LOGFMT.match(line) is not None and any(key in fields for key in MESSAGES)
        shown.append(json.dumps(fields).encode() if is_record else line)
    if 2 * sum(a is not b for a, b in zip(shown, lines, strict=True)) < len(lines):
        return None
    return NumberedLog(b"\n".join(shown), log.name, log.runs, log)


def _unquoted(value: bytes) -> str:
    """A value of logfmt."""
    text = value.decode("utf-8", "replace")
    try:
        return str(parse_json(text)) if text.startswith('"') else text
    except ValueError:
        return text.strip('"')


def numbers(log: NumberedLog) -> Callable[[int], int]:
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
