"""Writes plain data as YAML or as one line of JSON, for pairun's additions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

_PLAIN = re.compile(r"[A-Za-z/](?:[-\w./@]|:(?=[-\w./@]))*+", re.ASCII)
_SINGLE = re.compile('[ -&(-~]*["\\\\][ -&(-~]*', re.ASCII)
"""Texts that single quotes show unchanged, and double quotes do not."""
_OTHER_TYPES = frozenset(
    ("y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf", "none")
)
_ESCAPED = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]")


def as_json(value: Any) -> str:
    """Plain data as JSON in one line; YAML reads the same data from it."""
    text = json.dumps(value, ensure_ascii=False)
    return _ESCAPED.sub(lambda m: f"\\u{ord(m[0]):04x}", text)


def as_block(value: Any, indent: str) -> list[str]:
    """Plain data as lines of YAML: in block style, and its parts in flow style where a line is enough.

    No line is blank, and no text spans two lines, so that a removal can find the lines again.

    Args:
        value: a non-empty mapping or list.
        indent: of the first line, and the base of all others.
    """
    return [indent + line for line in _lines(value, LINE - len(indent))]


LINE = 120
"""The most columns of a line in flow style."""


def _lines(value: Any, width: int) -> Iterator[str]:
    for key, child in value.items() if isinstance(value, Mapping) else ((None, v) for v in value):
        start = "-" if key is None else f"{_scalar(key)}:"
        line = f"{start} {_flow(child)}"
        if not isinstance(child, Mapping | list) or not child or len(line) <= width:
            yield line
        elif key is None:
            first, *others = _lines(child, width - 2)
            yield f"- {first}"
            yield from (f"  {line}" for line in others)
        else:
            yield start
            indent = "" if isinstance(child, list) else "  "
            yield from (indent + line for line in _lines(child, width - len(indent)))


def _flow(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_scalar(k)}: {_flow(v)}' for k, v in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_flow, value))}]"
    return _scalar(value)


def _scalar(value: Any) -> str:
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _OTHER_TYPES:
        return value
    if isinstance(value, str) and _SINGLE.fullmatch(value):
        return f"'{value}'"
    return as_json(value)
