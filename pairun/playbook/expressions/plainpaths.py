"""Evaluates expressions that only name a value: most expressions, in a fifth of the others' time.

`simple` and Jinja evaluate everything else: names that are missing or secret, unknown parts of
known values, and every operator. The tests compare the results with Jinja's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from pairun.playbook.expressions.views import Partial, Unknown

_PATH = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*")
_EXPRESSION = re.compile(rf"\{{\{{ *({_PATH.pattern}) *\}}\}}")
_RESERVED = frozenset(
    {"true", "false", "none", "True", "False", "None", "not", "and", "or", "in", "is", "if", "else", "self", "super", "caller", "loop",
     "varargs", "kwargs", "range", "context", "environment"}
)  # fmt: skip
"""Names that Jinja does not read as names of the scope."""


class NotPlain:
    """The result if only Jinja can evaluate the expression."""


NOT_PLAIN: Final = NotPlain()


def plain_expression(text: str, names: Mapping[str, Any]) -> Any:
    """The value of a text that is one expression, ``{{ job.image.uri }}``.

    Args:
        text: the text.
        names: the names of the scope.

    Returns:
        A copy of the value, `Unknown` if its first name is unknown, or `NOT_PLAIN`.
    """
    match = _EXPRESSION.fullmatch(text)
    return NOT_PLAIN if match is None else _value(match[1], names)


def plain_condition(text: str, names: Mapping[str, Any]) -> bool | NotPlain:
    """The truth of a bare expression, ``job.volumes``; or `NOT_PLAIN`."""
    if _PATH.fullmatch(text) is None:
        return NOT_PLAIN
    value = _value(text, names)
    return NOT_PLAIN if isinstance(value, NotPlain | Unknown) else bool(value)


def _value(path: str, names: Mapping[str, Any]) -> Any:
    first, *keys = path.split(".")
    if first in _RESERVED or first not in names:
        return NOT_PLAIN
    value = names[first]
    if isinstance(value, Unknown):
        exists = not keys or value.children is None or keys[0] in value.children
        return value if exists else NOT_PLAIN
    for key in keys:
        entries = value.known if isinstance(value, Partial) else value
        if not isinstance(entries, Mapping) or key not in entries:
            return NOT_PLAIN
        value = entries[key]
    return _copy(value)


def _copy(value: Any) -> Any:
    """A copy of plain data; `NOT_PLAIN` if it contains anything else."""
    if value is None or isinstance(value, str | int | float):
        return value
    if type(value) is dict:
        copied = {key: _copy(each) for key, each in value.items()}
        return NOT_PLAIN if any(each is NOT_PLAIN for each in copied.values()) else copied
    if type(value) in {list, tuple}:
        elements = [_copy(each) for each in value]
        return NOT_PLAIN if any(each is NOT_PLAIN for each in elements) else elements
    return NOT_PLAIN
