"""Reads JSON that another process wrote: files, journals, logs, answers of servers and programs.

A failure of `parse_json` is a `json.JSONDecodeError`: one sentence with line and column. It quotes no
value, which may be a secret. `json.loads` has no bound: CPython 3.11 ends a deep text with RecursionError,
3.13 accepts 9,000 levels, and the next function that walks through the value fails instead.
"""

from __future__ import annotations

import json
import re
from json import JSONDecodeError
from typing import Any

MAX_JSON_BYTES = 256 << 20
"""The largest file that pairun reads, `cluster.json`; most callers read less."""

MAX_JSON_DEPTH = 100
"""Documents have 64 levels at most (`pairun.playbook.document.reading`); plans and answers hold them."""

_TOKEN = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"(\s*+:)?)?|[][{}]', re.DOTALL)
"""A string, also an unfinished one, so that a search stays linear; or a bracket."""

_MARKS = bytes.maketrans(b"{}", b"[]")
_OTHERS = bytes({*range(128)} - {*b'[]{}"'})


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise KeyError("a key twice")
    return found


_DECODER = json.JSONDecoder()
_STRICT = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=dict[str, Any]().__getitem__)


def parse_json(data: bytes | str, *, strict: bool = False) -> Any:
    """The value in a text.

    Args:
        data: the text; bytes must be UTF-8.
        strict: refuse NaN, infinity, and a key twice in an object: for what a person writes, and for
            what is shown as JSON again. Journals, logs and answers of servers contain NaN, and
            the last value of a key counts, as in Go and Python.

    Raises:
        JSONDecodeError: it is not JSON, larger than `MAX_JSON_BYTES`, or deeper than `MAX_JSON_DEPTH`.
    """
    if len(data) > MAX_JSON_BYTES:
        raise JSONDecodeError(f"Larger than {MAX_JSON_BYTES >> 20} MiB", "", 0)
    try:
        text = data if isinstance(data, str) else data.decode()
        if _may_be_deep(text):
            _check(text, 0)
        return (_STRICT if strict else _DECODER).decode(text)
    except JSONDecodeError:
        raise
    except KeyError as e:
        _check(text, 0, unique_keys=True)
        raise JSONDecodeError(f"It contains {e.args[0]}", text, 0) from None
    except ValueError as e:  # not UTF-8, or a number with too many digits
        raise JSONDecodeError(f"It cannot be read ({type(e).__name__})", "", 0) from None


def parse_json_at(text: str, at: int) -> tuple[Any, int]:
    """The value that begins at an index, and the index of its end; for values one after another.

    Raises:
        ValueError: as `parse_json`, which also bounds the size.
    """
    _check(text, at)
    return _DECODER.raw_decode(text, at)


def parse_record(data: bytes | str) -> dict[str, Any] | None:
    """The object in a text, such as a line of a journal or an answer; None if there is none."""
    try:
        value = parse_json(data)
    except JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None


def _may_be_deep(text: str) -> bool:
    """Whether `_check` must look: it knows the place, and takes ten times as long as this."""
    if text.count("[") + text.count("{") <= MAX_JSON_DEPTH:
        return False
    escaped = text.encode("ascii", "ignore").replace(b"\\\\", b"").replace(b'\\"', b"")
    marks = escaped.translate(_MARKS, _OTHERS).replace(b'""', b"")
    levels = b"".join(marks.split(b'"')[::2])
    for _ in range(MAX_JSON_DEPTH):
        levels = levels.replace(b"[]", b"")
    return bool(levels)


def _check(text: str, at: int, *, unique_keys: bool = False) -> None:
    """Refuse the value at an index if it is too deep, or has a key twice."""
    objects: list[set[str]] = []
    for token in _TOKEN.finditer(text, at):
        start = token.start()
        if text[start] in "[{":
            objects.append(set())
            if len(objects) > MAX_JSON_DEPTH:
                raise JSONDecodeError(f"More than {MAX_JSON_DEPTH} levels deep", text, start)
        elif text[start] in "]}":
            del objects[-1:]
            if not objects:
                return
        elif unique_keys and token[1] and objects:
            key, _ = _DECODER.raw_decode(text, start)
            if key in objects[-1]:
                raise JSONDecodeError(f"The key {key!r} is given twice", text, start)
            objects[-1].add(key)
