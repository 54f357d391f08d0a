"""JSON Schema, draft 2020-12, without a package: yes or no for the keywords of pairun's schemas.

Importing `jsonschema` takes a tenth of the init phase, and nearly every document fits its schema.
So `fits` runs first. `jsonschema` is imported only to describe errors, or for a schema
with other keywords.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

_TYPES: Mapping[str, Callable[[Any], bool]] = {
    "array": lambda value: type(value) is list,
    "boolean": lambda value: type(value) is bool,
    "integer": lambda value: type(value) is int or (type(value) is float and value.is_integer()),
    "null": lambda value: value is None,
    "number": lambda value: type(value) in (int, float),
    "object": lambda value: type(value) is dict,
    "string": lambda value: type(value) is str,
}
_SCALARS = (str, int, bool, type(None))
_KNOWN = (*_SCALARS, float, list, dict)
_NOTES = (
    "$schema", "$defs", "$comment", "title", "description", "default", "examples", "then", "else"
)  # fmt: skip
"""Keywords that check nothing themselves; ``then`` and ``else`` belong to ``if``."""


class _Undecided(Exception):
    """The schema or the value uses something that this module does not support."""


def fits(value: Any, schema: Mapping[str, Any]) -> bool:
    """Whether a value definitely fits a schema.

    Args:
        value: JSON as Python data.
        schema: a valid schema.

    Returns:
        False if the value does not fit, or if only `jsonschema` can decide.
    """
    try:
        return _fits(value, schema, schema)
    except _Undecided:
        return False


def _fits(value: Any, schema: Any, root: Mapping[str, Any]) -> bool:
    if type(schema) is bool:
        return schema
    if type(value) not in _KNOWN:
        raise _Undecided
    for keyword, given in schema.items():
        if keyword in _NOTES:
            continue
        if (check := _CHECKS.get(keyword)) is None:
            raise _Undecided
        if not check(value, given, schema, root):
            return False
    return True


def _type(value: Any, given: Any, *_: Any) -> bool:
    return any(_TYPES[name](value) for name in ([given] if type(given) is str else given))


def _enum(value: Any, given: Any, *_: Any) -> bool:
    return any(_same(value, each) for each in given)


def _same(one: Any, other: Any) -> bool:
    if type(one) in _SCALARS and type(other) in _SCALARS:
        # In Python 1 equals true, in JSON Schema it does not.
        return type(one) is type(other) and bool(one == other)
    if type(one) in (list, dict) and type(other) in _SCALARS:
        return False
    raise _Undecided


def _properties(value: Any, given: Any, _: Any, root: Mapping[str, Any]) -> bool:
    return type(value) is not dict or all(
        _fits(value[name], schema, root) for name, schema in given.items() if name in value
    )


def _pattern_properties(value: Any, given: Any, _: Any, root: Mapping[str, Any]) -> bool:
    return type(value) is not dict or all(
        _fits(each, schema, root)
        for pattern, schema in given.items()
        for name, each in value.items()
        if re.search(pattern, name)
    )


def _additional(value: Any, given: Any, schema: Any, root: Mapping[str, Any]) -> bool:
    if type(value) is not dict:
        return True
    known, patterns = schema.get("properties", ()), schema.get("patternProperties", ())
    return all(
        _fits(each, given, root)
        for name, each in value.items()
        if name not in known and not any(re.search(pattern, name) for pattern in patterns)
    )


def _names(value: Any, given: Any, _: Any, root: Mapping[str, Any]) -> bool:
    return type(value) is not dict or all(_fits(name, given, root) for name in value)


def _items(value: Any, given: Any, _: Any, root: Mapping[str, Any]) -> bool:
    return type(value) is not list or all(_fits(each, given, root) for each in value)


def _condition(value: Any, given: Any, schema: Any, root: Mapping[str, Any]) -> bool:
    branch = "then" if _fits(value, given, root) else "else"
    return _fits(value, schema.get(branch, True), root)


def _reference(value: Any, given: str, _: Any, root: Mapping[str, Any]) -> bool:
    schema: Any = root
    if not given.startswith("#/"):
        raise _Undecided
    for part in given.removeprefix("#/").split("/"):
        if type(schema) is not dict or part not in schema:
            raise _Undecided
        schema = schema[part]
    return _fits(value, schema, root)


def _measured(
    measure: Callable[[Any], float | None], compare: Callable[[Any, Any], bool]
) -> Callable[..., bool]:
    """The check of a limit, for values that can be measured."""

    def check(value: Any, limit: Any, *_: Any) -> bool:
        measured = measure(value)
        return measured is None or not compare(measured, limit)

    return check


def _below(measured: float, limit: float) -> bool:
    return measured < limit


def _above(measured: float, limit: float) -> bool:
    return measured > limit


def _number(value: Any) -> float | None:
    return value if type(value) in (int, float) else None


def _length_of(
    kind: type[str | list[Any] | dict[Any, Any]],
) -> Callable[[Any], int | None]:
    return lambda value: len(value) if type(value) is kind else None


_CHECKS: Mapping[str, Callable[..., bool]] = {
    "type": _type,
    "enum": _enum,
    "const": lambda value, given, *_: _enum(value, [given]),
    "properties": _properties,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional,
    "propertyNames": _names,
    "required": lambda value, given, *_: (
        type(value) is not dict or all(name in value for name in given)
    ),
    "items": _items,
    "allOf": lambda value, given, _, root: all(_fits(value, each, root) for each in given),
    "anyOf": lambda value, given, _, root: any(_fits(value, each, root) for each in given),
    "if": _condition,
    "$ref": _reference,
    "pattern": lambda value, given, *_: type(value) is not str or bool(re.search(given, value)),
    "minimum": _measured(_number, _below),
    "maximum": _measured(_number, _above),
    "minLength": _measured(_length_of(str), _below),
    "maxLength": _measured(_length_of(str), _above),
    "minItems": _measured(_length_of(list), _below),
    "maxItems": _measured(_length_of(list), _above),
    "minProperties": _measured(_length_of(dict), _below),
}
