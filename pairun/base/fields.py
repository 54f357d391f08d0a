"""Checks values from outside against type hints: arguments, and what another process or init wrote.

A record is a NamedTuple or an attrs class with keywords only. In JSON it is an object with its fields.
"""

from __future__ import annotations

import functools
import math
import re
import types
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

_T = TypeVar("_T")
Path = tuple[str | int, ...]
Check = Callable[[Any, str], Any]
"""Takes a value of the right type and its place; returns the value, or raises `BadField`."""


class BadField(Exception):
    """A field is invalid; the message names it, never its value.

    Args:
        where: its place, such as ``steps[0].args.x``; empty for the whole.
        must: what it must be.
        kind: the type that the value does not have.
        value: the value.
        path: its place as keys and indexes.
    """

    def __init__(
        self, where: str, must: str, kind: Any = None, value: object = None, path: Path = ()
    ) -> None:
        super().__init__(f"{where or 'it'} must {must}")
        self.kind, self.value, self.path = kind, value, path


def decode(kind: type[_T], value: object, where: str = "") -> _T:
    """The value as a type that has hints: a record, a list, a mapping, plain data.

    The hint ``Annotated[T, check]`` adds a `Check`. Numbers are finite.

    Args:
        kind: the type.
        value: plain data; may hold objects of the types.
        where: the value's place, for messages.

    Raises:
        BadField: a field is missing, unknown, of a wrong type or out of range.
    """
    walk = Walk()
    result: _T = walk.read(kind, value, (where,) if where else ())
    for problem in walk.problems:
        raise problem
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
    types.NoneType: "null", bool: "true or false", int: "a number", float: "a number", str: "text",
    list: "a list", tuple: "a list", Mapping: "a mapping",
}  # fmt: skip


class Walk:
    """Reads values by type hints; collects what is invalid.

    Args:
        outer: a type to a function that makes its value from one that comes from outside, or
            returns None.
    """

    def __init__(self, outer: Mapping[Any, Callable[[Any], Any]] | None = None) -> None:
        self.problems: list[BadField] = []
        self._outer = outer or {}

    def read(self, kind: Any, value: Any, path: Path = ()) -> Any:
        """The value as a type; None and problems if it is invalid."""
        known = len(self.problems)
        try:
            made = self._made(kind, value, path)
        except _Misfit as e:
            self.problems.append(BadField(_where(path), f"be {e}", kind, value, path))
        except BadField as e:
            self.problems.append(e)
        return None if len(self.problems) > known else made

    def _made(self, kind: Any, value: Any, path: Path) -> Any:
        origin, args = _parts(kind)
        if convert := self._outer.get(origin or kind):
            value = convert(value)
        if kind is Any:
            return value
        if origin is None:
            kind = getattr(kind, "__supertype__", kind)
            if _is_record(kind) and not isinstance(value, kind):
                return self._record(kind, _is_a(Mapping, value), path)
            return _number(kind, value) if kind in (int, float) else _is_a(kind, value)
        if origin is Annotated:
            value = self._made(args[0], value, path)
            for check in args[1:]:
                value = check(value, _where(path))
            return value
        if origin is Literal:
            if not any(value == each and type(value) is type(each) for each in args):
                raise _Misfit(f"one of {', '.join(map(str, args))}")
            return value
        if origin in (Union, types.UnionType):
            return self._option(args, value, path)
        if issubclass(origin, Mapping):
            items = _is_a(Mapping, value).items()
            return {
                self._key(args[0], k, path): self.read(args[1], v, (*path, str(k)))
                for k, v in items
            }
        items = enumerate(_is_a((list, tuple), value))
        parts = (self.read(args[0], each, (*path, n)) for n, each in items)
        return origin(parts) if origin in (list, frozenset) else tuple(parts)

    def _key(self, kind: Any, key: Any, path: Path) -> Any:
        # JSON has only texts as keys.
        is_number = kind is int and isinstance(key, str) and re.fullmatch("[0-9]{1,9}", key)
        return int(key) if is_number else self.read(kind, key, path)

    def _option(self, kinds: tuple[Any, ...], value: Any, path: Path) -> Any:
        """The value as the first type of a union that it has."""
        for kind in kinds:
            walk = Walk(self._outer)
            made = walk.read(kind, value, path)
            if not walk.problems:
                return made
        meant = [k for k in kinds if k is not types.NoneType]
        if isinstance(value, Mapping):
            meant = [k for k in meant if _is_record(k) and _fields(k)[1] <= value.keys()] or meant
        if len(meant) == 1:
            return self.read(meant[0], value, path)
        words = dict.fromkeys(
            "a mapping" if _is_record(k) else _WORDS.get(k, str(k)) for k in meant
        )
        raise _Misfit(f"{' or '.join(words)}, it is {type_words(value)}")

    def _record(self, kind: Any, value: Mapping[str, Any], path: Path) -> Any:
        hints, required = _fields(kind)
        for name in value:
            if name not in hints:
                raise BadField(_where(path), f"not have the field {name!r}")
        for name in hints:
            if name in required and name not in value:
                raise BadField(_where(path), f"have the field {name!r}")
        return kind(**{name: self.read(hints[name], v, (*path, name)) for name, v in value.items()})


class _Misfit(Exception):
    """A value does not have a type; the message is what it must be."""


@functools.cache
def _parts(kind: Any) -> tuple[Any, tuple[Any, ...]]:
    return get_origin(kind), get_args(kind)


def _where(path: Path) -> str:
    keys = (f"[{key}]" if isinstance(key, int) else f".{key}" for key in path)
    return "".join(keys).removeprefix(".")


def _is_a(kind: Any, value: Any) -> Any:
    if not isinstance(value, kind):
        first = kind[0] if isinstance(kind, tuple) else kind
        words = _WORDS.get(first) or f"a {first.__name__}"
        raise _Misfit(f"{words}, it is {type_words(value)}")
    return value


def _number(kind: Any, value: Any) -> Any:
    words = "a whole number" if kind is int else "a number"
    if isinstance(value, bool) or not isinstance(value, int if kind is int else int | float):
        raise _Misfit(f"{words}, it is {type_words(value)}")
    if kind is int:
        return value
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise _Misfit("a finite number")
    return number


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
