"""Checks data from outside against type hints: what a module's process, another process or init wrote.

A record is a NamedTuple or an attrs class with keywords only. In JSON it is an object with its fields.
"""

from __future__ import annotations

import functools
import math
import re
import types
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")
Check = Callable[[Any, str], Any]
"""Takes a value of the right type and its place; returns the value, or raises `BadField`."""


class BadField(Exception):
    """A field is invalid; the message names it, never its value.

    Args:
        where: its place, such as ``steps[0].args.x``; empty for the whole.
        must: what it must be.
    """

    def __init__(self, where: str, must: str) -> None:
        super().__init__(f"{where or 'it'} must {must}")


def decode(kind: type[T], value: object, where: str = "") -> T:
    """The value as a type that has hints: a record, a list, a mapping, plain data.

    The hint ``Annotated[T, check]`` adds a `Check`. Numbers are finite.

    Args:
        kind: the type.
        value: plain data; records may hold objects for fields of any other class.
        where: the value's place, for messages.

    Raises:
        BadField: a field is missing, unknown, of a wrong type or out of range.
    """
    result: T = _decode(kind, value, where)
    return result


def field_of(record: Mapping[str, Any], name: str, kind: Any, default: Any = None) -> Any:
    """One field of a record that another process wrote; the default if it is missing or invalid."""
    try:
        return decode(kind, record[name]) if name in record else default
    except BadField:
        return default


def between(least: int, most: int) -> Check:
    """A check for numbers within a range."""

    def check(value: Any, where: str) -> Any:
        if not least <= value <= most:
            raise BadField(where, f"be a number from {least} to {most}")
        return value

    return check


def not_negative(value: float, where: str) -> float:
    """A check for numbers of at least 0."""
    if value < 0:
        raise BadField(where, "not be negative")
    return value


Count = Annotated[int, between(0, 2**63 - 1)]
Seconds = Annotated[float, not_negative]


def type_words(value: object) -> str:
    """The name of a value's type for people."""
    for kind, words in _WORDS.items():
        if isinstance(value, kind):
            return words
    return f"a {type(value).__name__}"


_WORDS: dict[Any, str] = {
    types.NoneType: "null", bool: "true or false", (int, float): "a number", str: "text",
    (list, tuple): "a list", Mapping: "a mapping",
}  # fmt: skip


def _decode(kind: Any, value: Any, where: str) -> Any:
    if kind is Any:
        return value
    origin = get_origin(kind)
    if origin is None:
        if _is_record(kind):
            return _record(kind, value, where)
        return _number(kind, value, where) if kind in (int, float) else _plain(kind, value, where)
    args = get_args(kind)
    if origin is Annotated:
        value = _decode(args[0], value, where)
        for check in args[1:]:
            value = check(value, where)
        return value
    if origin is Literal:
        if not isinstance(value, str) or value not in args:
            raise BadField(where, f"be one of {', '.join(args)}")
        return value
    if origin in (Union, types.UnionType):
        fitting = [each for each in args if _fits(each, value)]
        return _decode((fitting or args)[0], value, where)
    if issubclass(origin, Mapping):
        items = _plain(Mapping, value, where).items()
        return {_key(args[0], k, where): _decode(args[1], v, f"{where}.{k}") for k, v in items}
    if not isinstance(value, list | tuple):
        raise BadField(where, f"be a list, it is {type_words(value)}")
    items = (_decode(args[0], each, f"{where}[{n}]") for n, each in enumerate(value))
    return origin(items) if origin in (list, frozenset) else tuple(items)


def _key(kind: Any, key: Any, where: str) -> Any:
    # JSON has only texts as keys.
    is_number = kind is int and isinstance(key, str) and re.fullmatch("[0-9]{1,9}", key)
    return int(key) if is_number else _decode(kind, key, where)


def _plain(kind: Any, value: Any, where: str) -> Any:
    if not isinstance(value, kind):
        words = _WORDS.get(kind) or f"a {kind.__name__}"
        raise BadField(where, f"be {words}, it is {type_words(value)}")
    return value


def _number(kind: Any, value: Any, where: str) -> Any:
    words = "a whole number" if kind is int else "a number"
    if isinstance(value, bool) or not isinstance(value, int if kind is int else int | float):
        raise BadField(where, f"be {words}, it is {type_words(value)}")
    if kind is int:
        return value
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise BadField(where, "be a finite number")
    return number


def _record(kind: Any, value: Any, where: str) -> Any:
    hints, required = _fields(kind)
    _plain(Mapping, value, where)
    for name in value:
        if name not in hints:
            raise BadField(where, f"not have the field {name!r}")
    for name in hints:
        if name in required and name not in value:
            raise BadField(where, f"have the field {name!r}")
    prefix = f"{where}." if where else ""
    return kind(**{name: _decode(hints[name], v, prefix + name) for name, v in value.items()})


def _is_record(kind: Any) -> bool:
    return hasattr(kind, "_field_defaults") or hasattr(kind, "__attrs_attrs__")


@functools.cache
def _fields(kind: Any) -> tuple[dict[str, Any], frozenset[str]]:
    """The types of a record's fields, and the names of those without a default."""
    hints = get_type_hints(kind, include_extras=True)
    optional = getattr(kind, "_field_defaults", None)
    if optional is None:
        optional = kind.__init__.__kwdefaults__ or {}
    return hints, frozenset(hints.keys() - optional.keys())


def _fits(kind: Any, value: Any) -> bool:
    """Whether a value decides for this option of a union."""
    if _is_record(kind):
        return isinstance(value, Mapping) and _fields(kind)[1] <= value.keys()
    return get_origin(kind) is None and kind is not Any and isinstance(value, kind)
