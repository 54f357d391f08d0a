"""Brings records that are no JSON lines into that form: arrays of objects, and logfmt."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from pairun.incident.numbered import NumberedLog, Runs

_SPREAD = re.compile(rb"\[\s*\{|\{\s*\n")
"""How objects begin that are an array, or have several lines."""

_LOGFMT = re.compile(rb"[a-zA-Z_][\w.]{0,40}=(?:\"|\S+ [a-zA-Z_][\w.]{0,40}=)")
_FIELD = re.compile(rb"(?:^|(?<= ))([a-zA-Z_][\w.]{0,40})=(\"(?:[^\"\\]|\\.)*\"|\S*)")
"""A line and a field in logfmt (https://brandur.org/logfmt)."""

_BETWEEN = re.compile(r"[\s,\[\]]*(?=\{)")


def one_each_line(log: NumberedLog) -> NumberedLog | None:
    """The records of a log as one JSON object each line; None if it is in no other form of records."""
    if _LOGFMT.match(log.data):
        return _from_logfmt(log)
    return _from_objects(log) if _SPREAD.match(log.data) else None


def _from_objects(log: NumberedLog) -> NumberedLog | None:
    """The objects of a JSON array, or that follow each other, as one line each; None without any."""
    text = log.data.decode("utf-8", "replace")
    decoder = json.JSONDecoder()
    number_of = numbers(log)
    lines: list[bytes] = []
    runs = Runs()
    at, index = 0, 0
    while match := _BETWEEN.match(text, at):
        index += text.count("\n", at, match.end())
        at = match.end()
        try:
            record, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            # a part is missing: go on with the next object that is indented as this one
            indent = text[text.rfind("\n", 0, at) + 1 : at]
            end = text.find(f"\n{indent}{{", at)
            if end < 0:
                break
            index += text.count("\n", at, end)
            at = end
            continue
        lines.append(json.dumps(record).encode())
        runs.repeat(number_of(index), 1)
        index += text.count("\n", at, end)
        at = end
    return NumberedLog(b"\n".join(lines), log.name, runs.runs) if len(lines) > 1 else None


def _from_logfmt(log: NumberedLog) -> NumberedLog | None:
    """The lines of logfmt (``ts=... pod=worker-1 msg="..."``) as objects; None if most are not."""
    lines = log.data.split(b"\n")
    shown = []
    for line in lines:
        fields = {m[1].decode(): _unquoted(m[2]) for m in _FIELD.finditer(line)}
        is_record = _LOGFMT.match(line) is not None
        shown.append(json.dumps(fields).encode() if is_record else line)
    if 2 * sum(a is not b for a, b in zip(shown, lines, strict=True)) < len(lines):
        return None
    return NumberedLog(b"\n".join(shown), log.name, log.runs, log)


def _unquoted(value: bytes) -> str:
    """A value of logfmt."""
    text = value.decode("utf-8", "replace")
    try:
        return str(json.loads(text)) if text.startswith('"') else text
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
